"""What a host says of its claims: windows in which a signal was active, quiet, or not looked at."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from jupyter_gpupool.agent.claim_use import KNOWN_FOR_S, ClaimGauges, DeviceUse
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.seen import Seen, Stage
from jupyter_gpupool.agent.use_watch import Sampled, UseWatch
from jupyter_gpupool.pool.device import Device, DeviceProcess, DeviceSample
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.protocol.activity import Activity

GIB = 2**30
NOW = datetime(2026, 12, 1, tzinfo=UTC)
QUIET = Activity(clients=1, quiet_s=600.0)
OF_SCHEDULER = {Signal.TASKS, Signal.CALLS, Signal.CLIENTS}
ONE = DeviceUse(leases=("l-1",), utilisations=(0,), held=(GIB,))


def gauges_of(*seen: Activity, every_s: float = 1.0) -> ClaimGauges:
    """A claim whose scheduler has said these, one after the other."""
    gauges = ClaimGauges(begin_s=0.0)
    for number, activity in enumerate(seen):
        gauges.heard(activity, number * every_s)
    return gauges


def test_scheduler_at_rest_is_quiet_all_the_time():
    """Tasks, calls and clients are known, and nothing else is."""
    use = gauges_of(*[QUIET] * 4).cut("c-1", 3.0)
    assert (use.begin_ms, use.end_ms, use.has_scheduler) == (0, 3000, True)
    assert (use.active, use.quiet) == (frozenset(), OF_SCHEDULER)
    assert (use.gpu_peak, use.clients) == (None, 1)


@pytest.mark.parametrize(
    ("activity", "signal"),
    [
        (Activity(processing=1), Signal.TASKS),
        (Activity(runnable=1), Signal.TASKS),
        (Activity(transfers=1), Signal.TASKS),
        (Activity(begun=1), Signal.TASKS),
        (Activity(runs=1), Signal.CALLS),
        (Activity(runs_begun=1), Signal.CALLS),
        (Activity(clients=1, quiet_s=0.5), Signal.CLIENTS),
    ],
)
def test_signal_is_active_in_the_whole_window(activity, signal):
    """Though it was so at one look alone, or between two."""
    after = Activity(begun=activity.begun, runs_begun=activity.runs_begun)
    use = gauges_of(Activity(), activity, after).cut("c-1", 2.0)
    assert use.active == {signal}
    assert use.quiet == OF_SCHEDULER - {signal}


def test_work_goes_on_in_a_window_that_no_look_fell_into():
    """Reports may come quicker than looks: a claim that computes must not seem idle for that."""
    gauges = gauges_of(Activity(processing=1))
    told = [gauges.cut("c-1", at_s) for at_s in (1.0, 2.0, KNOWN_FOR_S, KNOWN_FOR_S + 0.5)]
    assert [use.active for use in told] == [{Signal.TASKS}] * 3 + [frozenset()]
    assert [Signal.TASKS in use.quiet for use in told] == [False] * 4
    gauges.heard(Activity(), KNOWN_FOR_S + 1)
    gauges.cut("c-1", KNOWN_FOR_S + 1)
    assert Signal.TASKS in gauges.cut("c-1", KNOWN_FOR_S + 2).quiet


def test_task_that_can_never_run_is_no_work():
    """It is told, and keeps nothing alive."""
    use = gauges_of(Activity(stuck=3), Activity(stuck=3)).cut("c-1", 1.0)
    assert (use.active, use.stuck) == (frozenset(), 3)


def test_what_nobody_looked_at_is_unknown():
    """A scheduler that is silent for a while, and its window until it is seen all through."""
    gauges = gauges_of(QUIET)
    assert gauges.cut("c-1", 1.0).quiet == OF_SCHEDULER
    silent = gauges.cut("c-1", 1.0 + KNOWN_FOR_S)
    assert (silent.quiet, silent.clients) == (frozenset(), None)
    gauges.heard(QUIET, 10.0)
    assert gauges.cut("c-1", 10.5).quiet == frozenset()
    gauges.heard(QUIET, 11.0)
    assert gauges.cut("c-1", 11.5).quiet == OF_SCHEDULER


def test_use_of_devices_is_their_peak_and_their_mean():
    """Over all looks of the window, in thousandths; unknown if any of it is."""
    gauges = ClaimGauges(begin_s=0.0)
    for second, utilisations in enumerate([(0, 0), (900, 100), (0, 0), (0, 0)]):
        seen = DeviceUse(leases=("l-1", "l-2"), utilisations=utilisations, held=(GIB, GIB))
        gauges.sampled(seen, float(second))
    use = gauges.cut("c-1", 3.0)
    assert (use.gpu_peak, use.gpu_mean, use.held_bytes) == (900, 125, 2 * GIB)
    gauges.sampled(DeviceUse(leases=("l-1",), utilisations=(None,), held=(GIB,)), 4.0)
    assert gauges.cut("c-1", 4.0).gpu_peak is None


def test_use_of_devices_goes_on_in_a_window_that_no_look_fell_into():
    """For as long as a look counts: a report that is asked for must not make a claim unknown."""
    gauges = ClaimGauges(begin_s=0.0)
    gauges.sampled(DeviceUse(leases=("l-1",), utilisations=(300,), held=(GIB,)), 0.5)
    told = [gauges.cut("c-1", at_s) for at_s in (1.0, 1.1, KNOWN_FOR_S, KNOWN_FOR_S + 1)]
    assert [(use.gpu_peak, use.gpu_mean) for use in told] == [(300, 300)] * 3 + [(None, None)]
    gauges.sampled(DeviceUse(leases=("l-1",), utilisations=(None,), held=(GIB,)), KNOWN_FOR_S + 1)
    gauges.cut("c-1", KNOWN_FOR_S + 2)
    assert gauges.cut("c-1", KNOWN_FOR_S + 3).gpu_peak is None


def test_memory_that_changes_is_activity_and_memory_that_is_held_is_not():
    """So a claim that only holds its memory is idle."""
    gauges = ClaimGauges(begin_s=0.0)
    gauges.sampled(ONE, 0.0)
    gauges.sampled(ONE, 1.0)
    assert gauges.cut("c-1", 1.0).quiet == {Signal.MEMORY}
    gauges.sampled(DeviceUse(leases=("l-1",), utilisations=(0,), held=(2 * GIB,)), 2.0)
    assert gauges.cut("c-1", 2.0).active == {Signal.MEMORY}


def a_worker(*, share: int = 1000) -> Seen:
    """A worker that runs."""
    key = ProcessKey(claim_id="c-1", start=1, lease_id="l-1")
    return Seen(key=key, stage=Stage.ALIVE, uid=1, device="GPU-0", share=share)


def sampled(*, simulated: bool = False, utilisation: float | None = 0.25) -> Sampled:
    """One device, just sampled: two processes hold 3 GiB of it."""
    device = Device(uuid="GPU-0", index=0, model="A100", memory_bytes=80 * GIB, simulated=simulated)
    processes = (
        DeviceProcess(pid=7, memory_bytes=GIB),
        DeviceProcess(pid=8, memory_bytes=2 * GIB),
    )
    sample = DeviceSample(
        uuid="GPU-0",
        at=NOW,
        utilisation=utilisation,
        memory_used_bytes=3 * GIB,
        processes=processes,
    )
    owners = {"GPU-0": {7: a_worker().key}}
    return Sampled(known={"GPU-0": device}, samples={"GPU-0": sample}, owners=owners)


@pytest.mark.parametrize(
    ("worker", "devices", "peak", "held"),
    [
        (a_worker(), sampled(), 250, 3 * GIB),
        (a_worker(), sampled(utilisation=None), None, 3 * GIB),
        (a_worker(share=500), sampled(), 250, GIB),
        (a_worker(), sampled(simulated=True, utilisation=None), 0, 0),
    ],
    ids=["whole", "unmeasured", "part", "simulated"],
)
def test_devices_are_asked_for_the_claims_that_hold_them(worker, devices, peak, held):
    """Of a part of a device, memory is the claim's own; nothing computes on a simulated one."""
    watch = UseWatch(lambda: None)
    watch.sampled([worker], devices, 0.0)
    [use] = watch.cut({"c-1"}, 1.0)
    assert (use.leases, use.gpu_peak, use.held_bytes) == (("l-1",), peak, held)


def test_sample_that_was_looked_at_before_tells_nothing_new():
    """A driver that hangs makes what devices do unknown."""
    watch, devices = UseWatch(lambda: None), sampled()
    for second in range(10):
        watch.sampled([a_worker()], devices, float(second))
    [use] = watch.cut({"c-1"}, 10.0)
    assert (use.gpu_peak, use.quiet) == (None, frozenset())


def test_windows_follow_one_another_a_second_long_at_least():
    """However often something else has to be told; but the manager is answered at once."""
    watch = UseWatch(lambda: None)
    watch.heard("c-1", QUIET, 0.0)
    assert watch.cut({"c-1"}, 0.4) == ()
    [first] = watch.cut({"c-1"}, 1.2)
    assert (first.begin_ms, first.end_ms) == (0, 1200)
    watch.asked()
    [second] = watch.cut({"c-1"}, 1.5)
    assert (second.begin_ms, second.end_ms) == (1200, 1500)


def test_claim_that_stirs_is_told_at_once_and_once():
    """If it was told quiet last; one that goes on is told with the next report."""
    told = []
    watch = UseWatch(lambda: told.append(1))
    watch.heard("c-1", QUIET, 0.0)
    watch.cut({"c-1"}, 1.0)
    assert told == []
    watch.heard("c-1", Activity(processing=1), 2.0)
    assert told == [1]
    watch.cut({"c-1"}, 2.1)
    watch.heard("c-1", Activity(processing=1), 3.0)
    assert told == [1]


def test_a_new_connection_is_told_the_last_minutes_again():
    """Windows that follow one another as one, so that it is little."""
    watch = UseWatch(lambda: None)
    for second in range(100):
        watch.heard("c-1", QUIET, float(second))
        watch.cut({"c-1"}, float(second))
    watch.joins()
    watch.heard("c-1", Activity(processing=1), 100.0)
    told = watch.cut({"c-1"}, 100.0)
    assert [(use.begin_ms, use.end_ms) for use in told] == [
        (0, 60_000),
        (60_000, 99_000),
        (99_000, 100_000),
    ]
    assert [Signal.TASKS in use.active for use in told] == [False, False, True]


def test_claim_that_is_gone_is_forgotten():
    """Nothing of it is told any more."""
    watch = UseWatch(lambda: None)
    watch.heard("c-1", QUIET, 0.0)
    assert watch.cut(set(), 1.0) == ()
    watch.joins()
    assert watch.cut({"c-1"}, 2.0) == ()


def test_hours_without_a_manager_are_told_in_minutes():
    """The last ones; a window of hours would say little, and no manager would take it."""
    watch = UseWatch(lambda: None)
    for second in range(4 * 3600):
        watch.heard("c-1", QUIET, float(second))
        watch.keep_short(float(second))
    told = watch.cut({"c-1"}, 4 * 3600.0)
    assert all(use.end_ms - use.begin_ms <= 60_000 for use in told)
    assert (len(told), told[-1].end_ms) == (13, 4 * 3_600_000)
    assert all(a.end_ms == b.begin_ms for a, b in pairwise(told))
