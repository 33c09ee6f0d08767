"""Device time by quarters: exact where it was seen, unknown where it was not, won within bounds."""

from datetime import UTC, datetime

import pytest

from jupyter_gpupool.pool.signals import Sample, Signal
from jupyter_gpupool.scheduling.used_time import (
    MOST_WON_S,
    DeviceTime,
    Stretch,
    device_time,
    won_back,
)

QUIET = frozenset(Signal) - {Signal.GPU}


def a_sample(begin_s, end_s, *, busy=False, quiet=QUIET, gpu=0):
    """What was seen in a window; seconds since 1970."""
    active = frozenset({Signal.TASKS}) if busy else frozenset()
    return Sample(
        life="boot",
        begin_ms=begin_s * 1000,
        end_ms=end_s * 1000,
        at=datetime.fromtimestamp(end_s, UTC),
        active=active,
        quiet=quiet - active,
        gpu_peak=gpu,
        gpu_mean=gpu,
    )


def total(parts):
    """All quarters together."""
    return sum(parts.values(), DeviceTime())


def test_use_is_split_at_quarters():
    """Two devices from 800 s to 1,000 s: each quarter of an hour has its part."""
    held = (Stretch(begin_s=800, end_s=1000, share=2000),)
    found = device_time(held, [a_sample(800, 1000, busy=True)], ())
    assert found == {
        0: DeviceTime(held_s=200, busy_s=200),
        1: DeviceTime(held_s=200, busy_s=200),
    }


def test_what_nobody_saw_is_unknown():
    """Neither a gap nor a sample that cannot tell is idle."""
    held = (Stretch(begin_s=0, end_s=400, share=1000),)
    seen = [
        a_sample(0, 100, busy=True),
        a_sample(100, 200),
        a_sample(300, 400, quiet=frozenset(), gpu=None),
    ]
    found = total(device_time(held, seen, ()))
    assert (found.busy_s, found.idle_s, found.unknown_s) == (100, 100, 200)


def test_only_what_was_held_counts():
    """A window that is longer than the lease, and a part of a device."""
    held = (Stretch(begin_s=50, end_s=100, share=500),)
    found = total(device_time(held, [a_sample(0, 600)], ()))
    assert (found.held_s, found.idle_s) == (25, 25)


def test_clock_that_is_set_back_counts_nothing_twice():
    """Windows that overlap on the calendar."""
    held = (Stretch(begin_s=0, end_s=200, share=1000),)
    found = total(device_time(held, [a_sample(0, 150), a_sample(50, 200, busy=True)], ()))
    assert (found.idle_s, found.busy_s, found.unknown_s) == (150, 50, 0)


@pytest.mark.parametrize(
    ("ends_s", "back_s", "won_s"),
    [
        (500, (), 400),
        (500, (50, 300), 200),
        (10 * MOST_WON_S, (), MOST_WON_S),
        (100, (), 0),
    ],
    ids=[
        "until its time limit",
        "until its user is back",
        "no longer than can be known",
        "nothing after its time limit",
    ],
)
def test_won_time_is_bounded(ends_s, back_s, won_s):
    """What was taken at 100 s is won for a while."""
    taken = [Stretch(begin_s=100, end_s=ends_s, share=1000)]
    won = tuple(won_back(taken, back_s))
    found = total(device_time((), (), won))
    assert found.won_s == pytest.approx(won_s)
    assert found.held_s == 0
