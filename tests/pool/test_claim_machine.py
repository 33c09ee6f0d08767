"""A claim under any sequence of events: what no life, however odd, may break."""

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from jupyter_gpupool.pool import claim_events as happened
from jupyter_gpupool.pool.claim import MOST_START_TRIES, Claim, Phase
from jupyter_gpupool.pool.claim_events import ClaimEvent, EndKind
from jupyter_gpupool.pool.claim_machine import ImpossibleTransition, step
from jupyter_gpupool.pool.claim_step import Effect, Step, open_claim
from jupyter_gpupool.pool.hibernation import KEPT_RESULTS
from jupyter_gpupool.pool.idle_rule import Otherwise
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
    st.builds(
        happened.HibernateAsked,
        reason=REASONS,
        otherwise=st.sampled_from(Otherwise),
        resumes=st.booleans(),
        scaled=st.booleans(),
    ),
    st.builds(happened.RoomGiven, reason=REASONS, nbytes=st.integers(0, 99)),
    st.builds(happened.NotKept, reason=REASONS),
    st.builds(
        happened.ResultsKept,
        reason=REASONS,
        results=st.integers(0, 3),
        result_bytes=st.integers(0, 99),
        keep_for=DURATIONS,
    ),
    st.builds(
        happened.ResultsLost, reason=REASONS, again=st.integers(0, 3), gone=st.integers(0, 3)
    ),
    st.builds(happened.ResumeAsked, reason=REASONS),
    st.builds(happened.ResultsBack, reason=REASONS, unread=st.integers(0, 2)),
    st.builds(happened.EndAsked, reason=REASONS, kind=st.sampled_from(EndKind)),
    st.builds(happened.AllFreed, reason=REASONS),
)


class ClaimLife(RuleBasedStateMachine):
    """Throws every event at one claim, at times that may stand still or go back."""

    claim: Claim
    now: datetime
    failed_in_a_row: int = 0
    first_end: EndKind | None = None
    expiry: datetime | None = None
    latest_end: datetime | None = None

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
        self._happen_in_turn(data, happened.Granted, happened.MinimumUp, happened.HibernateAsked)

    @rule(data=st.data())
    def hibernate_and_resume(self, data: st.DataObject) -> None:
        """As deep as it gets."""
        self._happen_in_turn(data, happened.ResultsKept, happened.ResumeAsked, happened.Granted)

    def _happen_in_turn(self, data: st.DataObject, *kinds: type[happened.ClaimEvent]) -> None:
        for kind in kinds:
            self.happen(data.draw(EVENTS.filter(lambda event, kind=kind: isinstance(event, kind))))

    def _count(self, event: ClaimEvent, taken: Step) -> None:
        if isinstance(event, happened.StartFailed):
            self.failed_in_a_row += 1
        gave_up = isinstance(event, happened.StartFailed) and taken.claim.phase is Phase.HIBERNATED
        if isinstance(event, happened.MinimumUp) or gave_up:
            self.failed_in_a_row = 0
        self.first_end = self.first_end or taken.claim.end
        self.latest_end = self.latest_end or taken.claim.latest_end
        # Its clock stands still while it hibernates, and nowhere else.
        moves = (happened.ResultsKept, happened.ResumeAsked, happened.HibernateAsked)
        starts = (happened.Granted, happened.StartFailed, happened.Withdrawn)
        resumes = isinstance(event, starts) and taken.claim.hibernation is not None
        if self.expiry is None or isinstance(event, moves) or resumes:
            self.expiry = taken.claim.expires_at

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
    def expiry_moves_with_hibernation_alone(self) -> None:
        assert self.claim.expires_at == self.expiry
        assert self.claim.latest_end == self.latest_end
        if self.claim.latest_end is not None:
            assert self.claim.expires_at <= self.claim.latest_end

    @invariant()
    def starts_are_given_up_in_time(self) -> None:
        assert self.failed_in_a_row <= MOST_START_TRIES
        if self.failed_in_a_row == MOST_START_TRIES:
            assert self.claim.end is not None  # one that hibernates goes on doing so
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
        warning = self.claim.warning
        if warning is not None and self.claim.phase is not Phase.RUNNING:
            assert (self.claim.phase, warning.rule) == (Phase.HIBERNATED, KEPT_RESULTS)

    @invariant()
    def results_are_kept_exactly_while_it_hibernates(self) -> None:
        hibernation, phase = self.claim.hibernation, self.claim.phase
        if phase in (Phase.HIBERNATING, Phase.HIBERNATED, Phase.RESUMING):
            assert hibernation is not None
        if phase in (Phase.PENDING, Phase.ENDING, Phase.ENDED):
            assert hibernation is None

    @invariant()
    def only_a_running_claim_has_problems(self) -> None:
        assert not self.claim.problems or self.claim.phase is Phase.RUNNING


TestClaimLife = ClaimLife.TestCase
TestClaimLife.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
