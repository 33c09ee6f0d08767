"""The difference between what should run and what does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.reconcile import (
    ORPHANED_WORKER_S,
    GiveUp,
    MarkRetired,
    Start,
    Stop,
    Tell,
    _missing,
    difference,
)
from jupyter_gpupool.agent.seen import Seen, Stage
from jupyter_gpupool.agent.wanted import NOTHING, Wanted, WantedProcess, wanted_of
from jupyter_gpupool.protocol.launch import Orders
from jupyter_gpupool.protocol.link import Desired, WantedWorker

SCHEDULER = ProcessKey("c1", 1)
WORKER = ProcessKey("c1", 1, "l1")
ADDRESS = "tls://127.0.0.1:4000"


@pytest.fixture
def want(wanted_claim):
    """What is wanted: one claim with its scheduler and the given workers."""

    def make(*workers: WantedWorker, **different) -> Wanted:
        claim = wanted_claim("c1", *workers, **different)
        return wanted_of(Desired(generation=1, claims=(claim,)))

    return make


def a_worker(lease_id: str = "l1", device: str = "SIM-1", *, retire: bool = False) -> WantedWorker:
    return WantedWorker(lease_id=lease_id, device=device, retire=retire)


def table(*rows: Seen) -> dict[ProcessKey, Seen]:
    return {row.key: row for row in rows}


def test_nothing_wanted_and_nothing_seen_is_nothing_to_do() -> None:
    """An idle host does nothing."""
    assert difference(NOTHING, {}, 0) == ()


def test_missing_ones_start_scheduler_first(want) -> None:
    """Both at once: the worker hears the scheduler's address later."""
    actions = difference(want(a_worker()), {}, 0)
    assert [type(action) for action in actions] == [Start, Start]
    assert [action.key for action in actions] == [SCHEDULER, WORKER]


def test_scheduler_is_told_who_retires_here_and_elsewhere(want, wanted_claim) -> None:
    """Its workers may be on any host; it knows them all by name."""
    there = wanted_claim().scheduler.model_copy(update={"retire": ("l9",)})
    wanted = want(a_worker("l1", retire=True), a_worker("l2"), scheduler=there)
    assert wanted.processes[SCHEDULER].orders(None).retire == ("l1", "l9")


def test_surplus_stops_before_missing_starts(want, worker_seen) -> None:
    """A device is given up before anything else is begun."""
    other = worker_seen(key=ProcessKey("c0", 1, "l0"))
    assert isinstance(difference(want(), table(other), 0)[0], Stop)


@pytest.mark.parametrize("stage", [Stage.FORKING, Stage.ALIVE, Stage.AGAIN, Stage.FAILED])
def test_unwanted_stops_in_every_stage(stage, worker_seen) -> None:
    """Even what failed: its device has to be freed."""
    actions = difference(NOTHING, table(worker_seen(stage=stage)), 0)
    assert actions == (Stop(key=WORKER, ends_claim=True),)


@pytest.mark.parametrize("stage", [Stage.STOPPING, Stage.FREEING])
def test_what_is_going_is_left_to_go(stage, worker_seen) -> None:
    """A stop is begun once."""
    assert difference(NOTHING, table(worker_seen(stage=stage)), 0) == ()


@pytest.mark.parametrize("stage", [Stage.STOPPING, Stage.FREEING])
def test_wanted_again_while_going_is_not_turned_back(
    stage, want, worker_seen, scheduler_seen
) -> None:
    """It has to be gone before it can start anew."""
    rows = table(scheduler_seen(), worker_seen(stage=stage))
    assert difference(want(a_worker()), rows, 0) == ()


def test_stop_of_one_worker_does_not_end_its_claim(want, worker_seen, scheduler_seen) -> None:
    """It gets the longer grace, for it may have something to hand over."""
    actions = difference(want(), table(scheduler_seen(), worker_seen()), 0)
    assert actions == (Stop(key=WORKER, ends_claim=False),)


def test_ended_worker_is_forked_again(want, worker_seen, scheduler_seen) -> None:
    """Once it is fully gone."""
    rows = table(scheduler_seen(), worker_seen(stage=Stage.AGAIN))
    [action] = difference(want(a_worker()), rows, 0)
    assert isinstance(action, Start)


@pytest.mark.parametrize("stage", [Stage.FAILED, Stage.RETIRED])
def test_given_up_worker_stays_given_up(stage, want, worker_seen, scheduler_seen) -> None:
    """The manager ends its lease; the agent does not try again by itself."""
    rows = table(scheduler_seen(), worker_seen(stage=stage))
    assert difference(want(a_worker()), rows, 0) == ()


def test_failed_scheduler_is_never_started_again(want, scheduler_seen) -> None:
    """Its claim's futures died with it."""
    failed = scheduler_seen(stage=Stage.FAILED, failed_at_s=0)
    assert difference(want(), table(failed), 0) == ()


def test_no_worker_starts_for_a_failed_scheduler(want, scheduler_seen) -> None:
    """It would only wait for it."""
    failed = scheduler_seen(stage=Stage.FAILED, failed_at_s=0)
    assert difference(want(a_worker()), table(failed), 0) == ()


def test_worker_outlives_its_scheduler_for_a_while_only(want, worker_seen, scheduler_seen) -> None:
    """Should the manager not end it."""
    rows = table(scheduler_seen(stage=Stage.FAILED, failed_at_s=100.0), worker_seen())
    assert difference(want(a_worker()), rows, 100 + ORPHANED_WORKER_S - 1) == ()
    [action] = difference(want(a_worker()), rows, 100 + ORPHANED_WORKER_S)
    assert isinstance(action, GiveUp)


def test_busy_device_keeps_the_next_worker_waiting(want, worker_seen, scheduler_seen) -> None:
    """Two leases of one device never run together."""
    other = worker_seen(key=ProcessKey("c0", 1, "l0"), stage=Stage.FREEING)
    assert difference(want(a_worker()), table(scheduler_seen(), other), 0) == ()


def test_next_start_waits_for_the_earlier_scheduler(want, scheduler_seen) -> None:
    """Two schedulers of one claim never run together."""
    rows = table(scheduler_seen(stage=Stage.STOPPING))
    assert difference(want(a_worker(), start=2), rows, 0) == ()


def test_next_start_begins_once_the_earlier_one_is_gone(want) -> None:
    """Nothing of it is in the table any more."""
    assert len(difference(want(a_worker(), start=2), {}, 0)) == 2


def test_worker_hears_where_its_scheduler_listens(want, worker_seen, scheduler_seen) -> None:
    """As soon as it does, and once."""
    rows = table(scheduler_seen(), worker_seen())
    orders = Orders(scheduler_address=ADDRESS)
    assert difference(want(a_worker()), rows, 0) == (Tell(key=WORKER, orders=orders),)
    told = table(scheduler_seen(), worker_seen(orders=orders))
    assert difference(want(a_worker()), told, 0) == ()


def test_worker_hears_of_a_scheduler_elsewhere(want, worker_seen) -> None:
    """The manager fills its address in."""
    wanted = want(a_worker(), scheduler=None, scheduler_address="tls://10.0.0.1:1")
    [action] = difference(wanted, table(worker_seen()), 0)
    assert action.orders.scheduler_address == "tls://10.0.0.1:1"


def test_scheduler_is_told_whom_to_retire(want, worker_seen, scheduler_seen) -> None:
    """And how many to keep."""
    told = worker_seen(orders=Orders(scheduler_address=ADDRESS))
    [action] = difference(want(a_worker(retire=True)), table(scheduler_seen(), told), 0)
    assert action == Tell(key=SCHEDULER, orders=Orders(retire=("l1",)))


def test_retiring_worker_that_is_gone_has_retired(want, worker_seen, scheduler_seen) -> None:
    """It is not forked again, nor for the first time."""
    rows = table(scheduler_seen(orders=Orders(retire=("l1",))), worker_seen(stage=Stage.AGAIN))
    assert difference(want(a_worker(retire=True)), rows, 0) == (MarkRetired(key=WORKER),)
    del rows[WORKER]
    assert difference(want(a_worker(retire=True)), rows, 0) == (MarkRetired(key=WORKER),)


LEASES = ("l1", "l2", "l3", "l4")
DEVICES = st.sampled_from(["D1", "D2"])
AT_WORK = {Stage.FORKING, Stage.ALIVE, Stage.STOPPING, Stage.FREEING}


@given(
    st.dictionaries(st.sampled_from(LEASES), DEVICES),
    st.dictionaries(DEVICES, st.tuples(st.sampled_from(LEASES), st.sampled_from(list(Stage)))),
)
def test_no_two_processes_are_ever_on_one_device(wanted_devices, rows) -> None:
    """Whatever is wanted and whatever is there; even a manager's mistake changes nothing."""
    seen = {
        key: Seen(key=key, stage=stage, uid=0, device=device)
        for device, (lease, stage) in rows.items()
        for key in [ProcessKey("c1", 1, lease)]
    }
    processes = {
        key: WantedProcess(key=key, claim=None, worker=a_worker(lease, device))
        for lease, device in wanted_devices.items()
        for key in [ProcessKey("c1", 1, lease)]
    }
    actions = list(_missing(Wanted(generation=1, processes=processes), seen))
    on_device = [row.device for row in seen.values() if row.stage in AT_WORK]
    on_device += [action.wanted.device for action in actions if isinstance(action, Start)]
    assert len(on_device) == len(set(on_device))


def _part(lease_id: str, share: int, device: str = "SIM-1") -> WantedWorker:
    return WantedWorker(lease_id=lease_id, device=device, share=share)


def _started(actions) -> list[str]:
    return [a.key.lease_id for a in actions if isinstance(a, Start) and a.key.lease_id]


def test_parts_of_a_device_start_together(want) -> None:
    """As many as it has room for; should the manager ever want more, the last one waits."""
    wanted = want(_part("l1", 500), _part("l2", 300), _part("l3", 300), _part("l4", 200))
    assert _started(difference(wanted, {}, 0)) == ["l1", "l2", "l4"]


def test_part_starts_beside_those_that_run(want, worker_seen) -> None:
    """But not beside one that leaves too little."""
    runs = worker_seen(key=WORKER, device="SIM-1", share=700)
    wanted = want(_part("l1", 700), _part("l2", 300), _part("l3", 300))
    assert _started(difference(wanted, table(runs), 0)) == ["l2"]


def test_whole_device_waits_until_the_last_part_has_gone(want, worker_seen) -> None:
    """What is being freed counts until it is."""
    going = worker_seen(key=ProcessKey("c0", 1, "l0"), device="SIM-1", share=1, stage=Stage.FREEING)
    assert _started(difference(want(a_worker()), table(going), 0)) == []


def test_worker_with_several_devices_waits_for_each(want, worker_seen) -> None:
    """One that another worker has keeps it from starting at all."""
    several = WantedWorker(lease_id="l1", device="SIM-1", further=("SIM-2",))
    other = worker_seen(key=ProcessKey("c0", 1, "l0"), device="SIM-2")
    assert _started(difference(want(several), table(other), 0)) == []
    assert _started(difference(want(several), {}, 0)) == ["l1"]
