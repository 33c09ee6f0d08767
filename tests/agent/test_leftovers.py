"""Shared memory that a claim's processes leave behind goes; what anybody holds stays."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import uuid

import pytest

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.footprint import Footprint
from jupyter_gpupool.agent.held_files import held_in
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.left_behind import SHARED_MEMORY, Places
from jupyter_gpupool.agent.leftovers import Leftovers
from jupyter_gpupool.agent.removing import Stuck
from jupyter_gpupool.agent.sweeping import Sweeper
from jupyter_gpupool.agent.sysv_memory import segments
from jupyter_gpupool.agent.trail import Owed, Trail, TrailFiles
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid

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
OPEN = MAKE.replace("os.close(fd)", "")
PYTHONS = """
import sys, time
from multiprocessing import resource_tracker, shared_memory
resource_tracker.register = lambda *_: None
kept = shared_memory.SharedMemory(sys.argv[1], create=True, size=4096)
print(flush=True)
time.sleep(600)
"""
PID_IN_NAME = """
import os, sys, time
pid, name, folder = os.getpid(), *sys.argv[1:]
names = [f"/dev/shm/torch_{pid}_{name}", f"{folder}/joblib_memmapping_folder_{pid}_1"]
open(names[0], "x").close()
os.mkdir(names[1])
open(names[1] + "/array", "x").close()
print(*names, flush=True)
time.sleep(600)
"""
SOCKET = """
import socket, sys, time
kept = socket.socket(socket.AF_UNIX)
kept.bind(sys.argv[1])
kept.listen()
print(flush=True)
time.sleep(600)
"""
SEGMENT = """
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
made = libc.shmget(0, 4096, 0o600)
print(made, flush=True)
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
def said():
    """What the workers said when they were ready."""
    return []


@pytest.fixture
def start(said):
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
        said.append(popen.stdout.readline().decode().split())
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


@pytest.mark.parametrize("killed_before", [False, True], ids=["ended", "killed by somebody else"])
async def test_what_bears_its_pid_is_removed(start, said, name, tmp_path, killed_before):
    """Names that libraries give, which say whose they are: also where nobody saw the end coming."""
    sweeper = Sweeper(Leftovers(Places(temporary=(tmp_path,))))
    sweeper.leftovers.note_start("c-1")
    worker = start(PID_IN_NAME, name, str(tmp_path))
    if killed_before:
        os.kill(worker.leader.pid, signal.SIGKILL)
    assert await sweeper.end(worker, grace_s=0)
    assert not any(map(os.path.lexists, said[0]))
    sweeper.close()


async def test_what_bears_the_pid_of_one_that_lives_stays(start, said, name, tmp_path):
    """Another worker of the claim ends, and the library may open it again."""
    sweeper = Sweeper(Leftovers(Places(temporary=(tmp_path,))))
    sweeper.leftovers.note_start("c-1")
    one, other = start(PID_IN_NAME, name, str(tmp_path)), start(MAKE, f"{name}-2")
    assert await sweeper.end(other, grace_s=0)
    assert all(map(os.path.lexists, said[0]))
    assert await sweeper.end(one, grace_s=0)
    assert not any(map(os.path.lexists, said[0]))
    sweeper.close()


async def test_socket_that_it_had_bound_is_removed(start, tmp_path):
    """Nobody listens there any more; one that somebody else bound stays."""
    sweeper = Sweeper(Leftovers(Places(temporary=(tmp_path,))))
    sweeper.leftovers.note_start("c-1")
    own, others = tmp_path / "own", tmp_path / "others"
    worker = start(SOCKET, str(own))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(others))
        assert await sweeper.end(worker, grace_s=0)
        assert not own.exists()
        assert others.exists()
    sweeper.close()


async def test_system_v_memory_that_it_had_made_is_removed(sweeper, start, said):
    """The kernel says who made it; another process's stays."""
    sweeper.leftovers.note_start("c-1")
    worker, other = start(SEGMENT), start(SEGMENT, claim="c-2")
    made, others = (int(words[0]) for words in said)
    assert await sweeper.end(worker, grace_s=0)
    left = {each.id for each in segments()}
    assert made not in left
    assert others in left
    sweeper.leftovers.note_start("c-2")
    assert await sweeper.end(other, grace_s=0)
    assert others not in {each.id for each in segments()}


async def test_next_agent_removes_what_the_last_one_had_noted(start, name, tmp_path):
    """One that was killed between the end of a process and the removal."""
    before = Leftovers(kept=tmp_path / "leftovers")
    before.note_start("c-1")
    worker = start(MAKE, name)
    before.note(worker, [worker.leader.pid])
    os.kill(worker.leader.pid, signal.SIGKILL)
    sweeper = Sweeper(Leftovers(kept=tmp_path / "leftovers"))
    assert await sweeper.end(worker, grace_s=0)
    assert not (SHARED_MEMORY / name).exists()
    sweeper.leftovers.forget_others(())
    assert not list((tmp_path / "leftovers").iterdir())
    sweeper.close()


async def test_what_cannot_be_removed_is_owed_until_it_can(start, tmp_path):
    """Its devices are named with the reason, also by the next agent."""
    folder, kept = tmp_path / "places", tmp_path / "leftovers"
    folder.mkdir()
    leftovers = Leftovers(kept=kept)
    stuck = Stuck(folder / "stays", "operation not permitted")
    leftovers.owe("c-1", folder / "stays", stuck, ["GPU-1"])
    (folder / "stays").touch()
    again = Leftovers(kept=kept)
    assert again.dirty["GPU-1"] == (
        f"Its last claim left what cannot be removed: {folder / 'stays'} (operation not permitted)."
    )
    again.forget_others(())
    assert again.owes
    assert again.retry()
    assert (again.dirty, again.owes, (folder / "stays").exists()) == ({}, False, False)


@pytest.mark.parametrize("now", ["another user's", "held"])
def test_what_took_the_place_of_what_is_owed_stays(tmp_path, now):
    """Whose it is and who holds it is asked anew at each try."""
    path = tmp_path / "joblib_memmapping_folder_1"
    path.touch(mode=0o600)
    uid = os.getuid() + (now == "another user's")
    owed = Owed(str(path), "it is busy", (DeviceUuid("GPU-1"),), uid)
    trail = Trail(boot=procfs.boot_id(), since_s=0.0, owed=(owed,))
    TrailFiles(tmp_path / "kept").write(ClaimId("c-1"), trail)
    leftovers = Leftovers(kept=tmp_path / "kept")
    with path.open() if now == "held" else contextlib.nullcontext():
        assert (leftovers.retry(), leftovers.owes) == (now != "held", now == "held")
        assert path.exists()


async def test_damaged_note_removes_nothing(start, name, tmp_path):
    """And keeps no agent from starting."""
    kept = tmp_path / "leftovers"
    before = Leftovers(kept=kept)
    before.note_start("c-1")
    worker = start(MAKE, name)
    before.note(worker, [worker.leader.pid])
    [note] = kept.iterdir()
    note.write_text("{}")
    sweeper = Sweeper(Leftovers(kept=kept))
    assert await sweeper.end(worker, grace_s=0)
    assert (SHARED_MEMORY / name).exists()
    sweeper.close()


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


async def test_what_somebody_named_stays(sweeper, start, caplog):
    """A data set that a notebook put there after it claimed, and that a worker has mapped.

    It is said that it stays.
    """
    caplog.set_level("INFO")
    data = SHARED_MEMORY / f"gpupool-test-{uuid.uuid4().hex}.npy"
    sweeper.leftovers.note_start("c-1")
    try:
        assert await sweeper.end(start(OPEN, data.name), grace_s=0)
        assert data.exists()
        assert f"maybe somebody wants them: {data}. They stay." in caplog.text
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
