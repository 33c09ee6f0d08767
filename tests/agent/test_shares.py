"""Who takes more of a shared device than their part: told first, ended then."""

from datetime import UTC, datetime

import pytest

from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.shares import Found, ShareWatch, Taken, used_bytes
from jupyter_gpupool.pool.device import DeviceProcess, DeviceSample

GIB = 2**30
KEY, OTHER = ProcessKey("c1", 1, "l1"), ProcessKey("c2", 1, "l2")


@pytest.fixture
def look():
    """What a watch with ten seconds of grace finds of a worker that has 8 GiB."""
    watch = ShareWatch(grace_s=10)

    def at(now_s: float, used_gib: float) -> Found:
        taken = Taken(key=KEY, used_bytes=int(used_gib * GIB), part_bytes=8 * GIB)
        [found] = watch.look([taken], now_s)
        return found

    return at


def test_part_is_ones_own_to_the_last_byte(look) -> None:
    """Whoever takes exactly their part is not even warned."""
    assert look(0, 8) == Found(key=KEY, warning="")


def test_warning_says_how_much_and_what_to_do(look) -> None:
    """With the numbers, and it stays as it was first said."""
    found = look(0, 9.5)
    assert found.warning == (
        "Worker l1 uses 9.5 GiB of its device's memory, and its part is 8 GiB: it is ended unless"
        " it frees 1.5 GiB within 10 s. Claim a larger part if it needs that much."
    )
    assert look(5, 12) == found


def test_grace_is_bounded(look) -> None:
    """Whoever takes too much when it is over goes, and is told why."""
    assert not look(0, 9).kill_for
    assert not look(9.9, 9).kill_for
    assert look(10, 11).kill_for == "it used 11 GiB of its device's memory, and its part is 8 GiB"


def test_who_frees_it_in_time_stays(look) -> None:
    """The warning is gone, and a whole grace later the overrun is forgotten."""
    look(0, 9)
    assert look(5, 7) == Found(key=KEY, warning="")
    look(15, 7)
    assert not look(16, 9).kill_for


def test_who_comes_and_goes_is_one_overrun(look) -> None:
    """Else memory that is freed for a second in every ten would never count."""
    look(0, 9)
    look(6, 7)
    assert not look(8, 9).kill_for
    look(9, 7)
    assert look(11, 9).kill_for


def test_worker_that_was_started_again_begins_anew(look) -> None:
    """Nobody pays for the process before it: while it starts it takes nothing that is counted."""
    watch = ShareWatch(grace_s=10)
    taken = Taken(key=KEY, used_bytes=9 * GIB, part_bytes=8 * GIB)
    watch.look([taken], 0)
    watch.look([], 5)
    [found] = watch.look([taken], 11)
    assert not found.kill_for


def test_children_count_and_neighbours_do_not() -> None:
    """By whose process each one is; what NVML cannot say counts for nothing."""
    sizes = {7: GIB, 8: 2 * GIB, 9: 4 * GIB, 10: None}
    processes = tuple(DeviceProcess(pid=pid, memory_bytes=size) for pid, size in sizes.items())
    sample = DeviceSample(uuid="GPU-1", at=datetime.now(UTC), processes=processes)
    owners = {7: KEY, 8: KEY, 9: OTHER, 10: KEY}
    assert used_bytes(sample, owners, KEY) == 3 * GIB
