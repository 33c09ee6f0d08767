import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_gpupool.agent.devices.lock import DeviceHeldElsewhere, DeviceLocks, NotTheLock
from jupyter_gpupool.agent.devices.lock_folder import agreed_folder, find_folder
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.ids import DeviceUuid

Pools = Callable[[], DeviceLocks]
GPU = DeviceUuid("GPU-1")
OTHER = DeviceUuid("GPU-2")
NOBODY = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do so")


def test_a_device_is_locked_by_one_pool_alone(pools: Pools):
    """The second pool is refused, and keeps every other device."""
    here, there = pools(), pools()
    here.acquire(GPU)
    with pytest.raises(DeviceHeldElsewhere, match="GPU-1"):
        there.acquire(GPU)
    assert there.acquire(OTHER)


def test_acquiring_again_gives_the_same_descriptor(pools: Pools):
    """Making it so twice changes nothing."""
    locks = pools()
    assert locks.acquire(GPU) == locks.acquire(GPU)
    assert locks.held() == {GPU}


def test_a_released_device_is_free_for_others(pools: Pools):
    """Releasing what is not held is fine as well."""
    here, there = pools(), pools()
    here.acquire(GPU)
    here.release(GPU)
    here.release(GPU)
    assert not there.is_held_elsewhere(GPU)
    assert there.acquire(GPU)


def test_only_others_locks_count_as_held_elsewhere(pools: Pools):
    """The question does not take anything, and an unknown device is free."""
    here, there = pools(), pools()
    here.acquire(GPU)
    assert there.is_held_elsewhere(GPU)
    assert not here.is_held_elsewhere(GPU)
    assert not there.is_held_elsewhere(OTHER)


def test_a_question_does_not_make_a_device_held(pools: Pools, lock_folder: Path):
    """Somebody who only looks at that moment never turns an acquire away for good."""
    here = pools()
    here.acquire(GPU)
    here.release(GPU)
    asking = os.open(lock_folder / GPU, os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    assert not here.is_held_elsewhere(GPU)
    with pytest.raises(DeviceHeldElsewhere):
        here.acquire(GPU)
    os.close(asking)
    assert here.acquire(GPU)


def test_release_leaves_a_workers_lock_alone(pools: Pools):
    """While a worker has the descriptor, no pool gets its device."""
    here, there = pools(), pools()
    workers = os.dup(here.acquire(GPU))
    here.release(GPU)
    assert there.is_held_elsewhere(GPU)
    os.close(workers)
    assert not there.is_held_elsewhere(GPU)


def test_a_restarted_agent_adopts_its_workers_lock(pools: Pools):
    """The device is never free in between, and never counts as another pool's."""
    old, new, there = pools(), pools(), pools()
    workers = os.dup(old.acquire(GPU))
    old.close()
    new.expect_back(GPU)
    assert not new.is_held_elsewhere(GPU)
    with pytest.raises(DeviceHeldElsewhere):
        new.acquire(GPU)
    new.adopt(GPU, os.dup(workers))
    os.close(workers)
    assert new.held() == {GPU}
    assert there.is_held_elsewhere(GPU)


def test_what_is_expected_and_never_comes_is_held_elsewhere(pools: Pools):
    """Giving up on a worker shows what is true: somebody has the lock."""
    there, new = pools(), pools()
    there.acquire(GPU)
    new.expect_back(GPU)
    new.release(GPU)
    assert new.is_held_elsewhere(GPU)


def test_adopting_twice_keeps_one_descriptor(pools: Pools):
    """A worker that says hello again does no harm."""
    locks = pools()
    held = locks.acquire(GPU)
    again = os.dup(held)
    assert locks.adopt(GPU, again) == held
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(again)


def test_another_devices_lock_is_not_adopted(pools: Pools):
    """A worker cannot pass its device off as another one."""
    old, new = pools(), pools()
    with pytest.raises(NotTheLock):
        new.adopt(OTHER, os.dup(old.acquire(GPU)))
    assert new.held() == frozenset()


def test_a_descriptor_without_the_lock_is_not_adopted(pools: Pools, lock_folder: Path):
    """Who opened the file himself holds nothing, as long as another pool does."""
    there, new = pools(), pools()
    there.acquire(GPU)
    with pytest.raises(DeviceHeldElsewhere):
        new.adopt(GPU, os.open(lock_folder / GPU, os.O_RDONLY))


def test_a_lock_file_that_was_replaced_is_not_adopted(pools: Pools, lock_folder: Path):
    """A lock nobody else can see is none."""
    old, new = pools(), pools()
    fd = os.dup(old.acquire(GPU))
    (lock_folder / GPU).unlink()
    with pytest.raises(NotTheLock):
        new.adopt(GPU, fd)
    assert new.acquire(GPU)


def test_every_user_may_lock(pools: Pools, lock_folder: Path):
    """Folder and file are open to all, and nobody may remove another's."""
    pools().acquire(GPU)
    assert stat.S_IMODE(lock_folder.stat().st_mode) == 0o1777
    assert stat.S_IMODE((lock_folder / GPU).stat().st_mode) == 0o666
    assert [path.name for path in lock_folder.iterdir()] == [GPU]


@pytest.mark.parametrize("plant", ["symlink", "folder", "fifo"])
def test_what_is_no_plain_file_is_refused(pools: Pools, lock_folder: Path, tmp_path: Path, plant):
    """A planted link leads nowhere, and nothing waits on a planted pipe."""
    locks, path = pools(), lock_folder / GPU
    {
        "symlink": lambda: path.symlink_to(tmp_path / "elsewhere"),
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
    }[plant]()
    with pytest.raises(Unavailable, match="cannot be opened"):
        locks.acquire(GPU)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path):
    """Nobody can send our locks to a folder of his own."""
    (tmp_path / "real").mkdir()
    (tmp_path / "locks").symlink_to(tmp_path / "real")
    with pytest.raises(Unavailable, match="no folder"):
        DeviceLocks(tmp_path / "locks")


def test_a_folder_of_ours_is_opened_to_all(tmp_path: Path):
    """A folder that was made with a strict mask still serves every user."""
    folder = tmp_path / "locks"
    folder.mkdir(mode=0o700)
    assert find_folder(folder) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777


def test_a_folder_that_cannot_be_made_says_who_can(tmp_path: Path):
    """The hint names the way out."""
    with pytest.raises(Unavailable, match="Let root make it"):
        find_folder(tmp_path / "missing" / "locks")


def test_old_names_of_instances_stay_in_the_folder(pools: Pools, lock_folder: Path):
    """A slash in a UUID is no path."""
    pools().acquire(DeviceUuid("MIG-GPU-1/../../x"))
    assert len(list(lock_folder.iterdir())) == 1


def test_a_lock_that_was_undone_is_taken_again(pools: Pools):
    """A worker's code can unlock the file it has inherited."""
    here, there = pools(), pools()
    fcntl.flock(here.acquire(GPU), fcntl.LOCK_UN)
    assert here.keep() == {}
    assert there.is_held_elsewhere(GPU)


def test_a_lock_file_that_was_removed_is_made_again(pools: Pools, lock_folder: Path):
    """Others see the lock again, and the old file is let go of."""
    here, there = pools(), pools()
    here.acquire(GPU)
    (lock_folder / GPU).unlink()
    assert here.keep() == {}
    assert there.is_held_elsewhere(GPU)
    assert os.fstat(here.acquire(GPU)).st_nlink == 1


def test_a_lock_that_another_pool_took_is_told(pools: Pools, lock_folder: Path):
    """Both use the device then: somebody has to know."""
    here, there = pools(), pools()
    here.acquire(GPU)
    (lock_folder / GPU).unlink()
    there.acquire(GPU)
    assert "was taken away" in str(here.keep()[GPU])


def test_held_lock_files_never_look_old(pools: Pools, lock_folder: Path):
    """Cleaners of temporary folders remove old files, held or not."""
    here = pools()
    here.acquire(GPU)
    os.utime(lock_folder / GPU, (0, 0))
    here.keep()
    assert (lock_folder / GPU).stat().st_mtime > 0


@root_only
def test_root_takes_over_a_folder_that_somebody_made(tmp_path: Path):
    """Its owner could rename root's locks away."""
    folder = tmp_path / "locks"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    find_folder(folder)
    status = folder.stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (0, 0o1777)


@root_only
def test_root_makes_the_usual_folder_unless_the_other_is_in_use(tmp_path: Path):
    """Where only root may make it, users' pools find it later, or root's finds theirs."""
    usual, fallback = tmp_path / "usual", tmp_path / "fallback"
    assert agreed_folder(usual, fallback) == usual
    fallback.mkdir()
    assert agreed_folder(usual, fallback) == fallback
