"""What people report of other systems, each as a test of its kind."""

from datetime import timedelta

import pytest
from idle_world import Watching, a_rule

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.idle_rule import KeepAlive
from jupyter_gpupool.pool.signals import Presence, Signal, orphaned
from jupyter_gpupool.scheduling.idle_verdicts import Call


def test_a_five_hour_cell_outlives_its_browser():
    """Nobody looks, no client asks for anything: the kernel is busy, and that is enough."""
    users = (Presence.HERE,)
    claim = Watching()
    assert claim.see_minutes(300, Signal.KERNEL, orphaned=orphaned(users)) == []


def test_a_silently_busy_kernel_is_not_idle():
    """It prints nothing and its server has not been heard: unknown is never idle."""
    assert Watching().see_minutes(600, unknown=(Signal.KERNEL,)) == []


def test_polls_and_heartbeats_do_not_keep_a_claim():
    """A client that is there and says so every second is no work."""
    assert Watching().see_minutes(20, Signal.CLIENTS)[-1] == (20, Call.TAKE)


def test_judging_goes_on_after_the_first_pass():
    """Used, idle, warned, used again, idle again: each time is judged like the first."""
    claim = Watching()
    for _ in range(5):
        claim.see_minutes(17)
        claim.see(60.0, Signal.TASKS)
    claim.see_minutes(20)
    told = [call for _, call in claim.calls]
    assert told == [Call.WARN, Call.CLEAR] * 5 + [Call.WARN, Call.TAKE]


def test_a_clock_without_zone_stops_nobody():
    """Such a sample cannot be made, so no judgement ever compares one."""
    claim = Watching()
    claim.at = claim.at.replace(tzinfo=None)
    with pytest.raises(ValueError, match="no zone"):
        claim.see()
    claim.at = claim.at.astimezone()
    assert claim.see_minutes(20)[-1][1] is Call.TAKE


def test_functions_run_on_workers_are_seen():
    """`client.run` and methods of actors, for hours and without a task."""
    assert Watching().see_minutes(300, Signal.CALLS) == []


def test_work_on_the_gpu_that_no_task_knows_of_is_seen():
    """A thread that a task has left behind computes on."""
    assert Watching().see_minutes(300, gpu_peak=600, gpu_mean=300) == []


def test_no_claim_vanishes_without_notice():
    """Even one that a rule of one minute meets after a night."""
    claim = Watching(rules=())
    claim.see_minutes(600)
    claim.rules = (a_rule(),)
    claim.see_minutes(600)
    (warned, first), (taken, second), *_ = claim.calls
    assert (first, second) == (Call.WARN, Call.TAKE)
    assert taken - warned >= 5


def test_keeps_come_to_an_end():
    """Who asks again and again for as much as there is, gets the policy's part of the day."""
    claim = Watching(rules=(a_rule(keep_alive=KeepAlive(longest_s=3600, per_day_s=7200)),))
    kept_until_min = []
    for minute in range(24 * 60):
        claim.see()
        try:
            claim.keep(3600)
        except BadRequest:
            continue
        kept_until_min.append(minute + 60)
    assert max(kept_until_min) <= 180
    assert any(call is Call.TAKE for _, call in claim.calls)


def test_memory_held_overnight_at_no_use_does_not_keep_devices():
    """What counts is that it changes; 31 GiB merely held are told in the evidence."""
    claim = Watching()
    taken = next(minute for minute, call in claim.see_minutes(600) if call is Call.TAKE)
    assert taken == 20
    assert claim.verdicts[19].evidence.held_bytes == 31 * 2**30


@pytest.mark.parametrize(
    ("what", "seen", "taken"),
    [
        ("kernel shut down", {"orphaned": True}, True),
        ("kernel restarts within a minute", {"orphaned": False}, False),
        ("laptop sleeps", {"orphaned": None, "unknown": (Signal.KERNEL,)}, False),
        ("network cut", {"orphaned": None, "unknown": tuple(set(Signal) - {Signal.GPU})}, False),
        ("browser closed over a busy kernel", {"orphaned": False, "busy": True}, False),
    ],
)
def test_only_an_end_for_good_ends_a_claim_soon(what, seen, taken):
    """Within ten minutes, of all that can become of a kernel."""
    seen = dict(seen)
    active = [Signal.KERNEL] if seen.pop("busy", False) else []
    calls = Watching().see_minutes(10, *active, **seen)
    assert (Call.TAKE in [call for _, call in calls]) is taken, what


def test_a_day_that_has_an_hour_twice_has_no_idle_hour_more():
    """When Berlin's clocks go back at night, twenty minutes are twenty minutes."""
    claim = Watching()
    claim.at = claim.at.replace(month=10, day=25, hour=0, minute=50)
    claim.see_minutes(10)
    claim.at -= timedelta(hours=1)
    assert claim.see_minutes(10) == [(15, Call.WARN), (20, Call.TAKE)]
