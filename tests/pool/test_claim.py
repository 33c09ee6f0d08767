"""What the arrows of a claim write down: tries, times, places in line, warnings."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jupyter_gpupool.pool import claim_events as happened
from jupyter_gpupool.pool.claim import MOST_START_TRIES, Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.claim_machine import step
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.pool.request import WorkerBounds

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


def granted(longest_life: timedelta = DAY) -> happened.Granted:
    return happened.Granted(reason="Yes.", scheduler_host=HostId("h-2"), longest_life=longest_life)


@pytest.mark.parametrize(
    ("time_limit", "longest", "life"),
    [(None, DAY, DAY), (HOUR, DAY, HOUR), (DAY, HOUR, HOUR)],
    ids=["no limit asked", "the limit is shorter", "the pool's longest life is shorter"],
)
def test_life_ends_at_the_nearer_limit(time_limit, longest, life, a_claim, noon):
    """A claim ends at its own time limit or the pool's longest life, counted from the grant."""
    after = step(a_claim(time_limit=time_limit), granted(longest), noon + HOUR).claim
    assert after.expires_at == noon + HOUR + life


def test_a_waiting_claim_has_no_end_yet(a_claim):
    """Waiting in line costs nothing of the time limit."""
    assert a_claim().expires_at is None


def test_a_second_grant_does_not_lengthen_life(a_claim, noon):
    """Starting again, or resuming, does not move the end."""
    first = step(a_claim(), granted(), noon).claim
    again = step(replace(first, phase=Phase.RESUMING), granted(), noon + HOUR).claim
    assert again.expires_at == first.expires_at


def test_a_grant_names_the_schedulers_host(a_claim, noon):
    """The scheduler has a place at once, and an address when it listens."""
    starting = step(a_claim(), granted(), noon).claim
    assert starting.scheduler is not None
    assert (starting.scheduler.host_id, starting.scheduler.address) == ("h-2", None)


def test_a_scheduler_that_listens_has_an_address(a_claim, event, noon):
    """What the scheduler reports is kept beside its place."""
    after = step(a_claim(Phase.STARTING), event(happened.SchedulerUp), noon).claim
    assert after.scheduler is not None
    assert (after.scheduler.address, after.scheduler.dashboard_port) == ("tls://10.0.0.1:1", 8787)


def test_the_last_try_fails_the_claim_with_its_reason(a_claim, event, noon):
    """The third failed start in a row ends it, and the reason is the failing process's."""
    claim = replace(a_claim(Phase.STARTING), failed_starts=MOST_START_TRIES - 1)
    over = step(claim, event(happened.StartFailed), noon).claim
    assert (over.phase, over.end) == (Phase.ENDING, EndKind.FAILED)
    assert over.reason == "No module named cupy."


def test_a_final_failure_uses_up_no_further_tries(a_claim, noon):
    """What cannot get better is not tried again."""
    final = happened.StartFailed(reason="No such environment.", final=True)
    assert step(a_claim(Phase.STARTING), final, noon).claim.end is EndKind.FAILED


def test_running_forgives_earlier_failures(a_claim, event, noon):
    """Tries are counted in a row: a claim that runs has all of them again."""
    claim = replace(a_claim(Phase.STARTING), failed_starts=2)
    assert step(claim, event(happened.MinimumUp), noon).claim.failed_starts == 0


def test_started_at_is_the_first_time_it_ran(a_claim, event, noon):
    """A claim that starts again keeps the time of its first start."""
    first = step(a_claim(Phase.STARTING), event(happened.MinimumUp), noon).claim
    again = step(replace(first, phase=Phase.STARTING), event(happened.MinimumUp), noon + HOUR)
    assert again.claim.started_at == noon


@pytest.mark.parametrize(
    ("phase", "bounds", "place_kept"),
    [
        (Phase.RUNNING, WorkerBounds(1, 3), False),
        (Phase.RUNNING, WorkerBounds(1, 1), True),
        (Phase.PENDING, WorkerBounds(1, 3), True),
    ],
    ids=["more while running", "fewer while running", "more while waiting"],
)
def test_only_a_running_claim_that_wants_more_queues_anew(phase, bounds, place_kept, a_claim, noon):
    """Nobody gets ahead of others by growing a claim that already runs."""
    rescaled = happened.Rescaled(reason="Other bounds.", bounds=bounds)
    after = step(a_claim(phase), rescaled, noon + HOUR).claim
    assert (after.wanted_since == noon) is place_kept
    assert after.bounds == bounds


@pytest.mark.parametrize(
    ("phase", "kind"),
    [
        (Phase.PENDING, EventKind.CLAIM_PENDING),
        (Phase.STARTING, EventKind.CLAIM_STARTING),
        (Phase.RUNNING, EventKind.CLAIM_CHANGED),
        (Phase.RESUMING, EventKind.CLAIM_RESUMING),
    ],
)
def test_rescaling_is_told_in_the_claims_own_phase(phase, kind, a_claim, event, noon):
    """Watchers never hear of a phase the claim is not in."""
    assert step(a_claim(phase), event(happened.Rescaled), noon).kind is kind


def test_a_warning_has_its_rule_and_deadline(a_claim, event, noon):
    """Before anything is taken, the claim says by which rule and when."""
    warned = step(a_claim(Phase.RUNNING), event(happened.Warned), noon).claim
    assert warned.warning is not None
    assert (warned.warning.rule, warned.warning.deadline) == ("idle", noon + timedelta(minutes=5))


@pytest.mark.parametrize("kind", [happened.WarningCleared, happened.EndAsked])
def test_a_warning_goes_when_it_no_longer_holds(kind, a_claim, event, noon):
    """Neither a claim that is busy again nor one that is over shows a warning."""
    warned = step(a_claim(Phase.RUNNING), event(happened.Warned), noon).claim
    assert step(warned, event(kind), noon).claim.warning is None


def test_an_attribute_change_does_not_restart_the_phase(a_claim, event, noon):
    """A lost worker does not make the claim look freshly started."""
    after = step(a_claim(Phase.RUNNING), event(happened.WorkersChanged), noon + HOUR).claim
    assert after.phase_since == noon


def test_the_reason_of_the_end_stays(a_claim, event, noon):
    """Once all is freed, the user still reads why the claim ended, not that it was cleaned up."""
    ending = step(a_claim(Phase.RUNNING), event(happened.EndAsked), noon).claim
    ended = step(ending, event(happened.AllFreed), noon)
    assert ended.reason == ended.claim.reason == "ann gave it back."


def test_a_claim_is_called_by_its_id_when_it_has_no_name(a_claim):
    """Every claim has something people can say."""
    claim = a_claim()
    unnamed = replace(claim, request=replace(claim.request, name=""))
    assert (claim.name, unnamed.name) == ("mine", "c-1")
