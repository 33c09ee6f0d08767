"""Decayed usage: charged from the grant on, and the same however often it is looked at."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.scheduling.amounts import DEVICES
from jupyter_gpupool.scheduling.queue_checks import grow
from jupyter_gpupool.scheduling.queues import Queue
from jupyter_gpupool.scheduling.shares import ALL_USAGE
from jupyter_gpupool.scheduling.usage import (
    HALF_LIFE_S,
    Usage,
    charge,
    normalised,
    usage_at,
    usage_by_queue,
)

MOMENTS = st.floats(0, 30 * HALF_LIFE_S)


def test_usage_halves_in_a_half_life():
    """What is no longer held counts half a day later, a quarter after two."""
    ended = Usage(device_s=1000.0)
    assert usage_at(ended, HALF_LIFE_S) == pytest.approx(500)
    assert usage_at(ended, 2 * HALF_LIFE_S) == pytest.approx(250)


def test_device_is_charged_from_its_grant():
    """A moment is charged in full, for decay is slow; half a device counts half."""
    granted = charge(Usage(), 1000, 500.0)
    assert usage_at(granted, 500.0) == 0
    assert usage_at(granted, 510.0) == pytest.approx(10, rel=1e-3)
    assert usage_at(charge(Usage(), 500, 500.0), 510.0) == pytest.approx(5, rel=1e-3)


def test_constant_use_reaches_a_ceiling():
    """A device held forever is worth half-life / ln 2 device-seconds, and no more."""
    held = charge(Usage(), 1000, 0.0)
    assert usage_at(held, 100 * HALF_LIFE_S) == pytest.approx(HALF_LIFE_S / math.log(2))


def test_returned_device_is_charged_no_more():
    """After the return the usage only decays."""
    ended = charge(charge(Usage(), 2000, 0.0), -2000, 3600.0)
    assert ended.held == 0
    assert usage_at(ended, 3600.0 + HALF_LIFE_S) == pytest.approx(ended.device_s / 2)


@given(st.lists(MOMENTS, max_size=20), MOMENTS)
def test_sampling_changes_no_usage(moments, end):
    """Settling the account at any moments in between gives what looking once at the end gives."""
    granted = charge(Usage(device_s=77.0), 3000, 0.0)
    settled = granted
    for moment in sorted(m for m in moments if m <= end):
        assert usage_at(settled, moment) >= 0
        settled = charge(settled, 0, moment)
    assert usage_at(settled, end) == pytest.approx(usage_at(granted, end), rel=1e-9)


def test_infinite_half_life_forgets_nothing():
    """Then usage is plain device-seconds, as budgets count them."""
    held = charge(Usage(device_s=5.0), 1500, 0.0, half_life_s=math.inf)
    assert usage_at(held, 100.0, half_life_s=math.inf) == 155.0


def test_clock_set_back_gives_nothing_back():
    """A moment before the last change reads as the last change."""
    usage = charge(Usage(), 1000, 1000.0)
    assert charge(usage, 1000, 900.0).at_s == 1000.0
    assert usage_at(Usage(device_s=9.0, at_s=50.0), 0.0) == 9.0


def test_parents_use_what_children_use():
    """Every queue above a leaf is charged with it."""
    parents = {"dept": None, "a": "dept", "b": "dept", "c": None}
    queues = [Queue(name=n, parent=p, guarantee=(0,), limit=(9,)) for n, p in parents.items()]
    total = usage_by_queue(grow((DEVICES,), queues), {"a": 1.5, "b": 2.0})
    assert total == {"dept": 3.5, "a": 1.5, "b": 2.0, "c": 0.0}


@given(st.lists(st.floats(0, 1e12), max_size=8))
def test_parts_of_usage_add_up(usages):
    """Together siblings have used all, up to the rounding of each."""
    parts = normalised(usages)
    assert abs(sum(parts) - ALL_USAGE * any(parts)) <= len(usages)
    assert all(0 <= part <= ALL_USAGE for part in parts)


@given(st.lists(st.floats(1, 1e9), min_size=1, max_size=8), st.floats(0, 5 * HALF_LIFE_S))
def test_waiting_changes_no_part(usages, later):
    """All decays alike, so an idle pool's shares stand still."""
    decayed = [usage_at(Usage(device_s=usage), later) for usage in usages]
    assert normalised(decayed) == pytest.approx(normalised(usages), abs=2)
