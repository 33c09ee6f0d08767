"""Shared memory that a claim's processes leave behind goes; what anybody holds stays."""

import os
import subprocess
import sys
import uuid

import pytest

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.footprint import Footprint
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.leftovers import SHARED_MEMORY, held_in
from jupyter_gpupool.agent.sweeping import Sweeper

pytestmark = pytest.mark.skipif(
    not SHARED_MEMORY.is_dir(), reason="this system has no folder of shared memory"
)
# Without its tracker, as a library of C++ makes it: nothing removes it but who knows of it.
MAKE = """
import os, sys, time, mmap
fd = os.open("/dev/shm/" + sys.argv[1], os.O_CREAT | os.O_RDWR, 0o600)
os.ftruncate(fd, 4096)
kept = mmap.mmap(fd, 4096)
os.close(fd)
print(flush=True)
time.sleep(600)
"""
PYTHONS = """
import sys, time
from multiprocessing import resource_tracker, shared_memory
resource_tracker.register = lambda *_: None
kept = shared_memory.SharedMemory(sys.argv[1], create=True, size=4096)
print(flush=True)
time.sleep(600)
"""
CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(flush=True)
child.wait()
"""


@pytest.fixture
async def sweeper():
    """What ends processes for an agent."""
    made = Sweeper()
    yield made
    made.close()


@pytest.fixture
def name():
    """A name in shared memory that nobody else has; gone after the test."""
    chosen = f"psm_gpupool-test-{uuid.uuid4().hex}"
    yield chosen
    (SHARED_MEMORY / chosen).unlink(missing_ok=True)


@pytest.fixture
def start():
    """Starts workers of claims, and ends what is left of them."""
    begun = []

    def worker(program, *arguments, claim="c-1"):
        lease = uuid.uuid4().hex
        popen = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env={**os.environ, "GPUPOOL_CLAIM": claim, "GPUPOOL_LEASE": lease},
            start_new_session=True,
            stdout=subprocess.PIPE,
        )
        begun.append(popen)
        popen.stdout.readline()
        return Footprint(
            key=ProcessKey(claim, 1, lease),
            host_id="none",
            leader=procfs.read_row(popen.pid).id,
            uid=os.getuid(),
            log="/nowhere",
        )

    yield worker
    for popen in begun:
        popen.kill()
        popen.wait()
        popen.stdout.close()


@pytest.mark.parametrize("grace_s", [0, 5])
@pytest.mark.parametrize("program", [MAKE, PYTHONS], ids=["mapped", "multiprocessing"])
async def test_what_a_worker_leaves_behind_is_removed(sweeper, start, name, program, grace_s):
    """Whether it ends by itself or is killed."""
    sweeper.leftovers.note_start("c-1")
    worker = start(program, name)
    assert SHARED_MEMORY / name in held_in(SHARED_MEMORY, worker.leader.pid)
    assert await sweeper.end(worker, grace_s=grace_s)
    assert not (SHARED_MEMORY / name).exists()


async def test_what_its_children_leave_behind_is_removed(sweeper, start, name):
    """Those that are killed with it."""
    sweeper.leftovers.note_start("c-1")
    assert await sweeper.end(start(CHILD, name, MAKE), grace_s=0)
    assert not (SHARED_MEMORY / name).exists()


async def test_what_another_claim_holds_stays(sweeper, start, name):
    """Of the same user: until that one ends, too."""
    sweeper.leftovers.note_start("c-1")
    sweeper.leftovers.note_start("c-2")
    one, other = start(MAKE, name), start(MAKE, name, claim="c-2")
    assert await sweeper.end(one, grace_s=0)
    assert (SHARED_MEMORY / name).exists()
    assert await sweeper.end(other, grace_s=0)
    assert not (SHARED_MEMORY / name).exists()


async def test_what_was_there_before_the_claim_stays(sweeper, start, name):
    """Somebody left it there for whoever comes, and it is not the claim's."""
    (SHARED_MEMORY / name).touch(mode=0o600)
    sweeper.leftovers.note_start("c-1")
    assert await sweeper.end(start(MAKE, name), grace_s=0)
    assert (SHARED_MEMORY / name).exists()


async def test_what_somebody_named_stays(sweeper, start):
    """A data set that a notebook put there after it claimed, and that a worker has mapped."""
    data = SHARED_MEMORY / f"gpupool-test-{uuid.uuid4().hex}.npy"
    sweeper.leftovers.note_start("c-1")
    try:
        assert await sweeper.end(start(MAKE, data.name), grace_s=0)
        assert data.exists()
    finally:
        data.unlink(missing_ok=True)


async def test_what_nobody_of_the_claim_held_stays(sweeper, start, name):
    """Whoever made it, and however new it is."""
    sweeper.leftovers.note_start("c-1")
    worker = start("import time; print(flush=True); time.sleep(600)")
    (SHARED_MEMORY / name).touch(mode=0o600)
    assert await sweeper.end(worker, grace_s=0)
    assert (SHARED_MEMORY / name).exists()


async def test_agent_that_does_not_know_what_was_before_removes_nothing(sweeper, start, name):
    """After its restart, or once its claim is forgotten."""
    sweeper.leftovers.note_start("c-1")
    sweeper.leftovers.forget_others({"c-2"})
    assert await sweeper.end(start(MAKE, name), grace_s=0)
    assert (SHARED_MEMORY / name).exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
async def test_what_is_anothers_stays(sweeper, start, name):
    """A file of another user, though the claim has it open."""
    sweeper.leftovers.note_start("c-1")
    worker = start(MAKE, name)
    os.chown(SHARED_MEMORY / name, 65534, 65534)
    assert await sweeper.end(worker, grace_s=0)
    assert (SHARED_MEMORY / name).exists()
