"""A holder in the hands of the agent: wanted, adopted, and let go when its work is done."""

import os

import pytest

from jupyter_gpupool.agent.adoption import adopt
from jupyter_gpupool.agent.endings import Circumstances, after_own_end
from jupyter_gpupool.agent.footprint import Footprint, Look
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.launching import HostTerms, launch_of
from jupyter_gpupool.agent.process_watch import Ended
from jupyter_gpupool.agent.procfs import ProcessId
from jupyter_gpupool.agent.reconcile import (
    MOST_HOLDERS_STARTING,
    GiveUp,
    Start,
    Stop,
    Tell,
    difference,
)
from jupyter_gpupool.agent.records import Records
from jupyter_gpupool.agent.seen import (
    Seen,
    Stage,
    forking,
    holder_report,
    scheduler_report,
    scheduler_said,
)
from jupyter_gpupool.agent.state_folder import StateFolder
from jupyter_gpupool.agent.wanted import Wanted, wanted_of
from jupyter_gpupool.protocol.keeping import HOLDER_NAME, Keeping, KeepPhase, Wish
from jupyter_gpupool.protocol.launch import HolderLaunch, Orders, Role, SchedulerState
from jupyter_gpupool.protocol.link import (
    Desired,
    ProcessPhase,
    TlsCredentials,
    WantedHolder,
    WantedScheduler,
)

HOLDER = ProcessKey("c1", 1).holder
NONE = TlsCredentials(ca="", certificate="", key="")


@pytest.fixture
def want(wanted_claim):
    """One claim that hibernates, or has done so."""

    def make(wish: Wish = Wish.HIBERNATED, *, holder: bool = True) -> Wanted:
        claim = wanted_claim(
            scheduler=WantedScheduler(
                credentials=NONE, dashboard_prefix="p", wish=wish, quota_bytes=99
            ),
            worker_credentials=TlsCredentials(ca="", certificate="of workers", key=""),
            holder=WantedHolder(memory_bytes=7, quota_bytes=99) if holder else None,
        )
        return wanted_of(Desired(generation=1, claims=(claim,)))

    return make


@pytest.fixture
def holder_seen():
    """A holder that its scheduler knows, with whatever differs."""

    def make(**different) -> Seen:
        values = {
            "key": HOLDER,
            "stage": Stage.ALIVE,
            "uid": os.getuid(),
            "process": ProcessId(102, 7),
            "registered": True,
        }
        return Seen(**(values | different))

    return make


def _ended(seen: Seen, status: int) -> Seen:
    around = Circumstances(retires=False, scheduler_failed=False, last_lines="", now_s=1.0)
    return after_own_end(seen, Ended(key=seen.key, process=seen.process, status=status), around)


def test_holder_is_started_and_its_scheduler_told_the_wish(want, scheduler_seen) -> None:
    """Whole, with how much may be kept; told again it changes nothing."""
    scheduler = scheduler_seen()
    told, start = sorted(
        difference(want(), {scheduler.key: scheduler}, 0), key=lambda a: isinstance(a, Start)
    )
    assert (start.key, start.key.role) == (HOLDER, Role.HOLDER)
    assert told == Tell(key=scheduler.key, orders=Orders(wish=Wish.HIBERNATED, quota_bytes=99))


def test_few_holders_start_at_a_time(wanted_claim, scheduler_seen, holder_seen) -> None:
    """When all claims of a host hibernate together; each that is there lets the next one start."""
    wish = WantedScheduler(credentials=NONE, dashboard_prefix="p", wish=Wish.HIBERNATED)
    holder = WantedHolder(memory_bytes=7, quota_bytes=99)
    ids = [f"c{number}" for number in range(9)]
    claims = tuple(wanted_claim(each, scheduler=wish, holder=holder) for each in ids)
    wanted = wanted_of(Desired(generation=1, claims=claims))
    rows = [scheduler_seen(key=ProcessKey(each, 1), orders=Orders(wish=wish.wish)) for each in ids]
    starts = difference(wanted, {row.key: row for row in rows}, 0)
    assert len(starts) == MOST_HOLDERS_STARTING
    rows += [holder_seen(key=start.key, registered=False) for start in starts]
    rows[-1] = holder_seen(key=rows[-1].key)
    actions = difference(wanted, {row.key: row for row in rows}, 0)
    assert [isinstance(action, Start) for action in actions].count(True) == 1


def test_wish_to_hibernate_is_told_once_its_holder_may_start(
    wanted_claim, scheduler_seen, holder_seen
) -> None:
    """When all claims hibernate together, most of them and their workers have nothing to do yet."""
    wish = WantedScheduler(credentials=NONE, dashboard_prefix="p", wish=Wish.HIBERNATED)
    holder = WantedHolder(memory_bytes=7, quota_bytes=99)
    ids = [f"c{number}" for number in range(9)]
    claims = tuple(wanted_claim(each, scheduler=wish, holder=holder) for each in ids)
    wanted = wanted_of(Desired(generation=1, claims=claims))
    rows = [scheduler_seen(key=ProcessKey(each, 1)) for each in ids]
    actions = difference(wanted, {row.key: row for row in rows}, 0)
    started = {action.key.claim_id for action in actions if isinstance(action, Start)}
    told = {action.key.claim_id for action in actions if isinstance(action, Tell)}
    assert len(started) == MOST_HOLDERS_STARTING
    assert told == started


def test_holders_that_never_register_hold_up_their_owner_alone(
    wanted_claim, scheduler_seen, holder_seen
) -> None:
    """However long their schedulers are wedged, everybody else's claims hibernate."""
    wish = WantedScheduler(credentials=NONE, dashboard_prefix="p", wish=Wish.HIBERNATED)
    holder = WantedHolder(memory_bytes=7, quota_bytes=99)
    owners = ["ana"] * (MOST_HOLDERS_STARTING + 1) + ["ben"]
    claims = tuple(
        wanted_claim(f"c{number}", owner=owner, scheduler=wish, holder=holder)
        for number, owner in enumerate(owners)
    )
    keys = [ProcessKey(claim.claim_id, 1) for claim in claims]
    rows = [scheduler_seen(key=key, orders=Orders(wish=wish.wish)) for key in keys]
    rows += [holder_seen(key=k.holder, registered=False) for k in keys[:MOST_HOLDERS_STARTING]]
    wanted = wanted_of(Desired(generation=1, claims=claims))
    actions = difference(wanted, {row.key: row for row in rows}, 0)
    assert [a.key for a in actions if isinstance(a, Start)] == [keys[-1].holder]


def test_holder_that_nobody_wants_is_stopped_and_its_claim_goes_on(
    want, scheduler_seen, holder_seen
) -> None:
    """Its results are back."""
    awake = Orders(quota_bytes=99)
    rows = {x.key: x for x in (scheduler_seen(orders=awake), holder_seen())}
    wanted = want(Wish.AWAKE, holder=False)
    assert difference(wanted, rows, 0) == (Stop(key=HOLDER, ends_claim=False),)


def test_holder_goes_with_a_scheduler_that_was_given_up(want, scheduler_seen, holder_seen) -> None:
    """Nobody knows any more what it holds."""
    lost = scheduler_seen(stage=Stage.FAILED, failed_at_s=0.0)
    rows = {x.key: x for x in (lost, holder_seen(orders=Orders()))}
    assert any(
        isinstance(action, GiveUp) and action.key == HOLDER
        for action in difference(want(), rows, 60.0)
    )


def test_holder_has_the_workers_credentials_and_its_own_bounds(want, tmp_path) -> None:
    """And the name by which its scheduler knows it; no device."""
    terms = HostTerms(folder=StateFolder(tmp_path), listen="10.0.0.1", memory_share_bytes=2**30)
    launch = launch_of(
        want().processes[HOLDER], terms=terms, devices=(), scheduler_address="tls://s:1"
    )
    assert (launch.role, launch.name, launch.worker) == (Role.HOLDER, HOLDER_NAME, None)
    assert launch.holder == HolderLaunch(memory_bytes=7, quota_bytes=99)
    assert launch.tls.certificate == "of workers"
    assert launch.scheduler_address == "tls://s:1"


def test_record_of_a_holder_comes_back_as_it_was(tmp_path, holder_seen) -> None:
    """A new agent knows it by its name; a damaged record still says what it was."""
    records = Records(tmp_path, boot="boot-1")
    records.write(holder_seen(used=True))
    [found] = records.load().seen
    assert found == holder_seen(used=True)
    [path] = tmp_path.glob("*.json")
    path.write_text("{")
    [named] = records.load().seen
    assert (named.key, named.device) == (HOLDER, None)


def test_holder_that_died_unseen_is_started_again(holder_seen) -> None:
    """Its scheduler says what went with it, and may still have all to give."""
    seen = holder_seen(stage=Stage.FORKING, process=None)
    footprint = Footprint(key=HOLDER, host_id="h", leader=None, uid=0, log="/log", group=None)
    look = Look(environment=lambda _: {}, output=lambda _: (), user=lambda _: 0)
    found = adopt((seen,), {}, look, footprint_of=lambda _: footprint, host_id="h", now_s=0)
    assert [one.stage for one in found.seen] == [Stage.AGAIN]


def test_holder_that_was_let_go_is_not_started_again(holder_seen) -> None:
    """Its scheduler has all results elsewhere; one that crashes is."""
    assert _ended(holder_seen(), 0).stage is Stage.RETIRED
    crashed = _ended(holder_seen(), -9)
    assert crashed.stage is Stage.AGAIN
    assert crashed.problem == "The holder was killed by signal 9; it is being started again."


def test_reports_say_where_the_results_are(scheduler_seen, holder_seen) -> None:
    """Of a scheduler that has not spoken yet, nothing: it may keep them or not."""
    keeping = Keeping(phase=KeepPhase.HIBERNATED, wish=Wish.HIBERNATED, held=3)
    state = SchedulerState(address="tls://s:1", dashboard_port=None, workers=(), keeping=keeping)
    said = scheduler_said(scheduler_seen(), state)
    assert scheduler_report(said).keeping == keeping
    assert scheduler_report(forking(said)).keeping is None
    report = holder_report(holder_seen())
    assert (report.claim_id, report.phase, report.pid) == ("c1", ProcessPhase.RUNNING, 102)
