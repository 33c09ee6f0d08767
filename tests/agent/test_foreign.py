"""Whose a process on a device is: a lease's, however it tried to get away, or a stranger's."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from jupyter_gpupool.agent.footprint import Footprint
from jupyter_gpupool.agent.foreign import foreign_on, owners_on
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.launching import CLAIM_MARK, LEASE_MARK
from jupyter_gpupool.pool.device import DeviceProcess, DeviceSample

LEASE, OTHER = (
    Footprint(
        key=ProcessKey(claim, 1, "l1"), host_id="h", leader=None, uid=os.getuid(), log="/no/log"
    )
    for claim in ("c1", "c2")
)


@pytest.fixture
def marked() -> Iterator[int]:
    """The pid of a program that a lease of claim c1 has started."""
    marks = {CLAIM_MARK: "c1", LEASE_MARK: "l1"}
    script = [sys.executable, "-c", "print(flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(script, env=os.environ | marks, **pipes) as started:
        started.stdout.readline()
        yield started.pid
        started.stdin.close()


def _sample(*pids: int) -> DeviceSample:
    processes = tuple(DeviceProcess(pid=pid, memory_bytes=1) for pid in pids)
    return DeviceSample(uuid="GPU-1", at=datetime.now(UTC), processes=processes)


def test_process_belongs_to_the_lease_whose_marks_it_has(marked: int) -> None:
    """And to no other one on the same device."""
    sample = _sample(marked, os.getpid())
    assert owners_on(sample, [OTHER, LEASE]) == {marked: LEASE.key}
    assert [process.pid for process in foreign_on(sample, [OTHER, LEASE])] == [os.getpid()]


def test_process_that_dropped_its_marks_is_known_by_its_group(tmp_path) -> None:
    """What it takes counts for its lease, and it is no stranger."""
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    grouped = Footprint(
        key=LEASE.key, host_id="h", leader=None, uid=None, log="/no/log", group=tmp_path
    )
    sample = _sample(os.getpid())
    assert owners_on(sample, [OTHER, grouped]) == {os.getpid(): LEASE.key}
    assert foreign_on(sample, [OTHER, grouped]) == ()
