"""Ends real processes for good, however they are related to the one that was asked to end."""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.footprint import Footprint
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.stopping import send
from jupyter_gpupool.agent.sweeping import Sweeper, find_each

SLEEP = "import time; time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); "
DAEMON = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    time.sleep(600)
os.wait()
print(flush=True)
time.sleep(600)
"""


class Worker:
    """A process that stands for a worker: first of its session, with its lease's marks."""

    def __init__(self, program: str) -> None:
        lease = uuid.uuid4().hex
        marks = {"GPUPOOL_CLAIM": "test", "GPUPOOL_LEASE": lease}
        self.popen = subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, **marks},
            start_new_session=True,
            stdout=subprocess.PIPE,
        )
        row = procfs.read_row(self.popen.pid)
        self.footprint = Footprint(
            key=ProcessKey("test", 1, lease),
            host_id="none",
            leader=row.id,
            uid=os.getuid(),
            log="/nowhere",
        )

    def wait_ready(self) -> "Worker":
        self.popen.stdout.readline()
        return self

    def stop(self) -> None:
        os.kill(self.popen.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.popen.pid, os.WSTOPPED)


def find_all(worker: Worker) -> tuple[procfs.ProcessRow, ...]:
    return find_each([worker.footprint])[0]


@pytest.fixture
def sweeper():
    made = Sweeper()
    yield made
    made.close()


@pytest.fixture
def worker():
    made = []

    def make(program: str) -> Worker:
        made.append(Worker(program))
        return made[-1]

    yield make
    for one in made:
        for row in find_all(one):
            send(row.id, signal.SIGKILL)
        one.popen.stdout.close()
        one.popen.wait(10)


async def test_asked_process_ends_by_itself(sweeper, worker) -> None:
    """With SIGTERM it may say goodbye."""
    one = worker("import time; print(flush=True); time.sleep(600)").wait_ready()
    assert await sweeper.end(one.footprint, grace_s=5)
    assert one.popen.wait(5) == -signal.SIGTERM


async def test_deaf_process_is_killed_after_its_grace(sweeper, worker) -> None:
    """It had its chance."""
    one = worker(DEAF + SLEEP).wait_ready()
    assert await sweeper.end(one.footprint, grace_s=0.1)
    assert one.popen.wait(5) == -signal.SIGKILL


async def test_stopped_process_is_killed_without_waiting(sweeper, worker) -> None:
    """It cannot hear anything else."""
    one = worker(SLEEP)
    one.stop()
    async with asyncio.timeout(5):
        assert await sweeper.end(one.footprint, grace_s=60)
    assert one.popen.wait(5) == -signal.SIGKILL


async def test_daemons_end_with_it(sweeper, worker) -> None:
    """In sessions of their own, reparented, with and without exec."""
    one = worker(DAEMON).wait_ready()
    assert len(find_all(one)) == 3
    assert await sweeper.end(one.footprint, grace_s=0)
    assert find_all(one) == ()


async def test_what_is_left_of_a_dead_leader_ends(sweeper, worker) -> None:
    """A crash leaves its children behind."""
    one = worker(DAEMON).wait_ready()
    one.popen.kill()
    one.popen.wait(5)
    assert await sweeper.end(one.footprint, grace_s=5)
    assert find_all(one) == ()


async def test_another_process_with_its_pid_is_spared(sweeper, worker) -> None:
    """Identity is pid and start time."""
    one = worker(SLEEP)
    leader = replace(one.footprint.leader, started_ticks=1)
    stranger = replace(one.footprint, leader=leader, key=ProcessKey("other", 1, "other"))
    assert await sweeper.end(stranger, grace_s=0)
    assert one.popen.poll() is None
    assert not send(leader, signal.SIGKILL)


async def test_one_reading_serves_all_endings(sweeper, worker) -> None:
    """A hundred claims that end together cost one look at the host, not a hundred."""
    workers = [worker(SLEEP) for _ in range(6)]
    ends = [sweeper.kill_all(one.footprint) for one in workers]
    assert await asyncio.gather(*ends) == [1] * 6
    assert sweeper.rounds == 1


async def test_failed_reading_is_heard_by_those_that_wait(sweeper, worker, monkeypatch) -> None:
    """And the next one serves again."""
    one = worker(SLEEP)
    with monkeypatch.context() as broken:
        broken.setattr(procfs, "read_rows", Path("/nowhere").stat)
        with pytest.raises(OSError, match="nowhere"):
            await sweeper.kill_all(one.footprint)
    assert await sweeper.end(one.footprint, grace_s=0)
