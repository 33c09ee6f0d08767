"""Signals reach the very process that was meant, and its end can be waited for."""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.procfs import ProcessId
from jupyter_gpupool.agent.stopping import send, wait_for_end


@pytest.fixture
def child():
    popen = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield popen
    popen.kill()
    popen.wait(10)
    popen.stdin.close()


@pytest.fixture(params=[True, False], ids=["with descriptors", "without any left"])
def descriptors(request, monkeypatch) -> bool:
    """A host that gives the agent no more descriptors is no reason to let a process live."""

    def refuse(_: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    if not request.param:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    return request.param


def identity(child) -> ProcessId:
    return procfs.read_row(child.pid).id


async def test_end_of_any_process_can_be_waited_for(child, descriptors) -> None:
    """Within a time, and for one that has gone already."""
    process = identity(child)
    assert not await wait_for_end(process, 0.05)
    assert send(process, signal.SIGKILL)
    assert await wait_for_end(process, 5)
    child.wait(5)
    assert await wait_for_end(process, 0)


def test_another_process_with_its_pid_is_spared(child, descriptors) -> None:
    """Identity is pid and start time."""
    assert not send(replace(identity(child), started_ticks=1), signal.SIGKILL)
    assert child.poll() is None
