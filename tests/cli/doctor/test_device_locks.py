"""A second pool on this machine, told by the locks it really holds."""

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpupool.agent.devices.lock import DeviceLocks
from jupyter_gpupool.cli.doctor.device_locks import (
    HeldLock,
    held_locks,
    judge_lock_folder,
    judge_locks,
)
from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.pool_view import PoolView
from jupyter_gpupool.pool.ids import DeviceUuid

GPU = DeviceUuid("GPU-1")


@pytest.fixture
def folder(open_folder: Path) -> Path:
    """A folder of locks that all users share."""
    made = open_folder / "locks"
    made.mkdir()
    made.chmod(0o1777)
    return made


@pytest.fixture
def held(folder: Path) -> Iterator[Path]:
    """The same, with a device leased by a pool of ours."""
    locks = DeviceLocks(folder)
    locks.acquire(GPU)
    yield folder
    locks.close()


def test_a_held_lock_tells_who_holds_it(held: Path):
    """By the kernel's own list."""
    assert held_locks(held) == (HeldLock(device=GPU, pid=os.getpid(), uid=os.getuid()),)


def test_a_lock_that_was_given_back_is_not_told(held: Path):
    """Files are left lying, and mean nothing."""
    locks = DeviceLocks(held)
    locks.acquire(DeviceUuid("GPU-2"))
    locks.release(DeviceUuid("GPU-2"))
    assert [lock.device for lock in held_locks(held)] == [GPU]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of others")
def test_a_pool_of_another_user_is_a_warning(folder: Path):
    """Its process and its user are named."""
    (folder / GPU).touch()
    (folder / GPU).chmod(0o666)
    hold = ["flock", "--no-fork", folder / GPU, "sh", "-c", "echo held; read end"]
    with subprocess.Popen(
        hold, user=65534, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        (found,) = judge_locks(held_locks(folder), PoolView(), os.getuid())
        assert holder.stdin is not None
        holder.stdin.close()
    assert found.severity is Severity.WARNING
    assert f"process {holder.pid} of nobody" in found.what


def test_a_second_pool_of_ones_own_is_a_note():
    """It takes devices from this one, by the user's own wish."""
    (found,) = judge_locks([HeldLock(device=GPU, pid=1, uid=7)], PoolView(), 7)
    assert (found.reference, found.severity) == ("own-second-pool", Severity.NOTE)


def test_what_the_users_pool_has_leased_is_no_second_pool(a_device, status):
    """Its own leases are as they are meant to be."""
    pool = PoolView(status=status(), devices=[a_device(GPU, leased=True)])
    (found,) = judge_locks([HeldLock(device=GPU, pid=1, uid=0)], pool, 7)
    assert found.severity is Severity.WELL


@pytest.mark.parametrize(("mode", "severity"), [(0o1777, "well"), (0o755, "problem")])
def test_the_lock_folder_has_to_be_shared(folder: Path, mode: int, severity: str):
    """Else a pool cannot lock devices; the command that helps is told."""
    folder.chmod(mode)
    found = judge_lock_folder(folder)
    assert found is not None
    assert found.severity.value == severity


def test_a_lock_folder_that_nobody_made_yet_is_nothing(folder: Path):
    """The first pool makes it."""
    assert judge_lock_folder(folder / "none") is None
    assert held_locks(folder / "none") == ()


def test_asking_takes_no_lock(folder: Path):
    """The very next pool gets it."""
    (folder / GPU).touch()
    held_locks(folder)
    with (folder / GPU).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert held_locks(folder)[0].device == GPU


def test_many_devices_of_a_second_pool_stay_one_line():
    """Some by name, of the others how many."""
    locks = [HeldLock(device=DeviceUuid(f"GPU-{n}")) for n in range(9)]
    (found,) = judge_locks(locks, PoolView(), 7)
    assert "GPU-3" in found.what
    assert found.what.endswith(" and 5 more.")
