"""Hears of the end of processes without asking again and again."""

import asyncio
import errno
import os
import subprocess
import sys

import pytest

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.process_watch import Ended, ProcessWatch
from jupyter_gpupool.agent.procfs import ProcessId

KEY = ProcessKey("c1", 1, "l1")


class Hearing:
    """A watch and what it told."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[Ended] = asyncio.Queue()
        self.watch = ProcessWatch(self.told.put_nowait)

    async def next(self) -> Ended:
        async with asyncio.timeout(5):
            return await self.told.get()


@pytest.fixture
async def hearing():
    one = Hearing()
    yield one
    one.watch.close()


@pytest.fixture
def process():
    popen = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield popen
    popen.kill()
    popen.stdin.close()
    popen.wait(5)


def identity(popen) -> ProcessId:
    return procfs.read_row(popen.pid).id


async def test_end_is_told_with_its_status(hearing, process) -> None:
    """Which its zygote says, a moment later."""
    hearing.watch.watch(KEY, identity(process), has_parent=True)
    process.kill()
    asyncio.get_running_loop().call_later(0.05, hearing.watch.ended_with, process.pid, -9)
    told = await hearing.next()
    assert (told.key, told.status) == (KEY, -9)
    assert told.words == "was killed by signal 9"


async def test_status_may_come_first(hearing, process) -> None:
    """The zygote may be quicker than the kernel's sign."""
    hearing.watch.watch(KEY, identity(process), has_parent=True)
    hearing.watch.ended_with(process.pid, 3)
    process.kill()
    assert (await hearing.next()).words == "ended with exit code 3"


async def test_end_without_parent_is_told_without_status(hearing, process) -> None:
    """An adopted process, or one whose zygote has died."""
    hearing.watch.watch(KEY, identity(process), has_parent=False)
    process.kill()
    assert (await hearing.next()).status is None


async def test_lost_status_is_not_waited_for_long(hearing, process) -> None:
    """Its zygote may have died with it."""
    hearing.watch.watch(KEY, identity(process), has_parent=True)
    process.kill()
    assert (await hearing.next()).status is None


async def test_process_that_has_gone_already_is_told(hearing) -> None:
    """It may end before anyone could watch it."""
    hearing.watch.watch(KEY, ProcessId(2**22 - 1, 1), has_parent=False)
    assert (await hearing.next()).key == KEY


async def test_another_process_with_its_pid_is_not_it(hearing, process) -> None:
    """What was to be watched has gone."""
    hearing.watch.watch(KEY, ProcessId(process.pid, 1), has_parent=False)
    assert (await hearing.next()).process == ProcessId(process.pid, 1)


async def test_each_end_is_told_once(hearing, process) -> None:
    """A late status tells nothing new."""
    hearing.watch.watch(KEY, identity(process), has_parent=False)
    process.kill()
    await hearing.next()
    hearing.watch.ended_with(process.pid, -9)
    await asyncio.sleep(0)
    assert hearing.told.empty()


async def test_status_of_an_earlier_process_with_its_pid_is_not_its(hearing, process) -> None:
    """A pid comes back, and a clean end of the one is no clean end of the other."""
    hearing.watch.ended_with(process.pid, 0)
    hearing.watch.watch(KEY, identity(process), has_parent=True)
    process.kill()
    assert (await hearing.next()).status is None


async def test_end_is_found_without_a_descriptor(hearing, process, monkeypatch) -> None:
    """The agent has none left; it looks now and then."""

    def refuse(_: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    hearing.watch.watch(KEY, identity(process), has_parent=False)
    hearing.watch.look()
    assert hearing.told.empty()
    process.kill()
    process.wait(5)
    hearing.watch.look()
    assert (await hearing.next()).key == KEY
