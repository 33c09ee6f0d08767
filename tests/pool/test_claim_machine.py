"""A claim under any sequence of events: what no life, however odd, may break."""

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from jupyter_gpupool.pool import claim_events as happened
from jupyter_gpupool.pool.claim import (
    MOST_START_TRIES,
    Claim,
    Effect,
    ImpossibleTransition,
    Phase,
    Step,
    open_claim,
    step,
)
from jupyter_gpupool.pool.claim_events import ClaimEvent, EndKind
from jupyter_gpupool.pool.ids import ClaimId, HostId, UserName
from jupyter_gpupool.pool.process_problem import ProcessProblem
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds

MOST_STORY = 12
REASONS = st.sampled_from(["Because.", "For a reason."])
BOUNDS = st.integers(0, 3).flatmap(
    lambda low: st.builds(WorkerBounds, st.just(low), st.integers(low, 6))
)
PROBLEMS = st.sampled_from([(), (ProcessProblem(process="scheduler", text="It stands still."),)])
DURATIONS = st.timedeltas(timedelta(seconds=1), timedelta(days=9))
EVENTS: st.SearchStrategy[ClaimEvent] = st.one_of(
    st.builds(
        happened.Granted,
        reason=REASONS,
        scheduler_host=st.just(HostId("h")),
        longest_life=DURATIONS,
    ),
    st.builds(
        happened.SchedulerUp,
        reason=REASONS,
        address=st.just("tls://h:1"),
        dashboard_port=st.none() | st.integers(1, 65_535),
    ),
    st.builds(happened.MinimumUp, reason=REASONS),
    st.builds(happened.Withdrawn, reason=REASONS),
    st.builds(happened.StartFailed, reason=REASONS, final=st.booleans()),
    st.builds(happened.WorkersChanged, reason=REASONS),
    st.builds(happened.Rescaled, reason=REASONS, bounds=BOUNDS),
    st.builds(happened.Warned, reason=REASONS, rule=st.just("idle"), after=DURATIONS),
    st.builds(happened.WarningCleared, reason=REASONS),
    st.builds(happened.ProblemsChanged, reason=REASONS, problems=PROBLEMS),
    st.builds(happened.Kept, reason=REASONS, duration=st.none() | DURATIONS),
    st.builds(happened.HibernateAsked, reason=REASONS),
    st.builds(happened.ResultsKept, reason=REASONS),
    st.builds(happened.ResumeAsked, reason=REASONS),
    st.builds(happened.EndAsked, reason=REASONS, kind=st.sampled_from(EndKind)),
    st.builds(happened.AllFreed, reason=REASONS),
)


class ClaimLife(RuleBasedStateMachine):
    """Throws every event at one claim, at times that may stand still or go back."""

    claim: Claim
    now: datetime
    failed_in_a_row: int = 0
    first_end: EndKind | None = None
    first_expiry: datetime | None = None

    @initialize(bounds=BOUNDS, limit=st.none() | DURATIONS)
    def open(self, bounds: WorkerBounds, limit: timedelta | None) -> None:
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)
        request = ClaimRequest(workers=bounds, time_limit=limit)
        self.claim = open_claim(ClaimId("c"), UserName("ann"), request, self.now).claim

    @rule(passed=st.timedeltas(timedelta(hours=-1), timedelta(hours=1)))
    def time_passes(self, passed: timedelta) -> None:
        self.now += passed

    @rule(event=EVENTS)
    def happen(self, event: ClaimEvent) -> None:
        before = self.claim
        try:
            taken = step(before, event, self.now)
        except ImpossibleTransition:
            return
        self.claim = taken.claim
        self._count(event, taken)
        self._check_what_is_told(before, taken)

    @rule(data=st.data())
    def start_well_or_not(self, data: st.DataObject) -> None:
        """The path a claim usually takes, so that deep phases are reached often."""
        for kind in (happened.Granted, happened.MinimumUp, happened.HibernateAsked):
            self.happen(data.draw(EVENTS.filter(lambda event, kind=kind: isinstance(event, kind))))

    def _count(self, event: ClaimEvent, taken: Step) -> None:
        if isinstance(event, happened.StartFailed):
            self.failed_in_a_row += 1
        if isinstance(event, happened.MinimumUp):
            self.failed_in_a_row = 0
        self.first_end = self.first_end or taken.claim.end
        self.first_expiry = self.first_expiry or taken.claim.expires_at

    def _check_what_is_told(self, before: Claim, taken: Step) -> None:
        assert taken.reason
        assert taken.kind in (f"claim.{taken.claim.phase}", "claim.changed", "claim.kept")
        assert before.phase is not Phase.ENDED
        lost_everything = taken.claim.phase in (Phase.PENDING, Phase.ENDING)
        if lost_everything and before.phase not in (Phase.PENDING, Phase.RESUMING, Phase.ENDING):
            assert Effect.END_LEASES in taken.effects

    @invariant()
    def an_end_is_final_and_one(self) -> None:
        assert self.claim.end == self.first_end
        assert self.claim.is_over is (self.claim.end is not None)

    @invariant()
    def expiry_never_moves(self) -> None:
        assert self.claim.expires_at == self.first_expiry

    @invariant()
    def starts_are_given_up_in_time(self) -> None:
        assert self.failed_in_a_row <= MOST_START_TRIES
        if self.failed_in_a_row == MOST_START_TRIES:
            assert self.claim.end is not None
        if not self.claim.is_over:
            assert self.claim.failed_starts == self.failed_in_a_row

    @invariant()
    def the_story_is_bounded_and_ends_now(self) -> None:
        assert 1 <= len(self.claim.story) <= MOST_STORY
        assert self.claim.story[-1].phase is self.claim.phase
        assert self.claim.story[-1].reason == self.claim.reason

    @invariant()
    def a_scheduler_has_a_place_when_one_may_run(self) -> None:
        if self.claim.phase in (Phase.STARTING, Phase.RUNNING, Phase.HIBERNATING):
            assert self.claim.scheduler is not None
        if self.claim.phase in (Phase.PENDING, Phase.ENDED):
            assert self.claim.scheduler is None

    @invariant()
    def only_a_running_claim_is_warned(self) -> None:
        assert self.claim.warning is None or self.claim.phase is Phase.RUNNING

    @invariant()
    def only_a_running_claim_has_problems(self) -> None:
        assert not self.claim.problems or self.claim.phase is Phase.RUNNING


TestClaimLife = ClaimLife.TestCase
TestClaimLife.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
