"""Builders for the tests of the pool's words: a claim in any phase, an event of any kind."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jupyter_gpupool.pool import claim_events as happened
from jupyter_gpupool.pool.claim import Claim, Phase, SchedulerPlace
from jupyter_gpupool.pool.claim_events import ClaimEvent, EndKind
from jupyter_gpupool.pool.claim_step import open_claim
from jupyter_gpupool.pool.ids import ClaimId, HostId, UserName
from jupyter_gpupool.pool.process_problem import SCHEDULER, ProcessProblem
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def noon() -> datetime:
    """The moment at which every test's claim was opened."""
    return NOON


@pytest.fixture
def a_claim() -> Callable[..., Claim]:
    """Builds a claim that was opened at noon and is now in `phase`."""

    def build(phase: Phase = Phase.PENDING, *, time_limit: timedelta | None = None) -> Claim:
        request = ClaimRequest(workers=WorkerBounds(1, 2), name="mine", time_limit=time_limit)
        claim = open_claim(ClaimId("c-1"), UserName("ann"), request, NOON).claim
        place = None if phase is Phase.PENDING else SchedulerPlace(host_id=HostId("h-1"))
        return replace(claim, phase=phase, scheduler=place)

    return build


@pytest.fixture
def every_event() -> tuple[ClaimEvent, ...]:
    """One event of each kind there is."""
    return (
        happened.Granted(
            reason="2 devices granted.",
            scheduler_host=HostId("h-1"),
            longest_life=timedelta(days=1),
        ),
        happened.SchedulerUp(reason="Up.", address="tls://10.0.0.1:1", dashboard_port=8787),
        happened.MinimumUp(reason="1 worker is ready."),
        happened.StartFailed(reason="No module named cupy."),
        happened.Withdrawn(reason="Its devices are needed elsewhere."),
        happened.WorkersChanged(reason="A worker was lost."),
        happened.Rescaled(reason="ann asks for 3 workers.", bounds=WorkerBounds(0, 3)),
        happened.Warned(reason="Idle for 30 min.", rule="idle", after=timedelta(minutes=5)),
        happened.WarningCleared(reason="Busy again."),
        happened.ProblemsChanged(
            reason="Its scheduler stands still.",
            problems=(ProcessProblem(process=SCHEDULER, text="Its scheduler stands still."),),
        ),
        happened.Kept(reason="ann keeps it for 1 h.", duration=timedelta(hours=1)),
        happened.HibernateAsked(reason="ann asked."),
        happened.RoomGiven(reason="There is room.", nbytes=9),
        happened.NotKept(reason="One of them is an actor."),
        happened.ResultsKept(
            reason="40 MiB kept.", results=3, result_bytes=40 * 2**20, keep_for=timedelta(days=7)
        ),
        happened.ResultsLost(reason="The holder ended.", again=2, gone=1),
        happened.ResumeAsked(reason="ann asked."),
        happened.ResultsBack(reason="All are back."),
        happened.EndAsked(reason="ann gave it back.", kind=EndKind.RELEASED),
        happened.AllFreed(reason="2 devices are free."),
    )


@pytest.fixture
def event(every_event: tuple[ClaimEvent, ...]) -> Callable[[type[ClaimEvent]], ClaimEvent]:
    """Picks the event of one kind."""
    return {type(one): one for one in every_event}.__getitem__
