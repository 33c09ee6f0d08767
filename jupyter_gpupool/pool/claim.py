"""A claim and its state machine: the only code that changes a claim's phase.

Called by the manager's service, one call a database transaction. The table is section 4 of the
design: (phase, event) → one function named after both ends. Pure: time is passed in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, TypeVar

from . import claim_events as happened
from .claim_events import ClaimEvent, EndKind
from .errors import Conflict
from .event import EventKind
from .evidence import Evidence
from .hibernation import KEPT_RESULTS, Hibernation
from .idle_rule import Otherwise
from .ids import ClaimId, HostId, UserName
from .kernel import Kernel
from .process_problem import ProcessProblem
from .request import ClaimRequest, WorkerBounds
from .units import plural

MOST_START_TRIES = 3
_STORY_LENGTH = 12
_REASON_SHOWN = 200


class Phase(StrEnum):
    """Where a claim is in its life."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    HIBERNATING = "hibernating"
    HIBERNATED = "hibernated"
    RESUMING = "resuming"
    ENDING = "ending"
    ENDED = "ended"


WAITING = frozenset({Phase.PENDING, Phase.RESUMING})
"""Phases in which a claim waits for a grant."""
HOLDING = frozenset({Phase.STARTING, Phase.RUNNING, Phase.HIBERNATING, Phase.ENDING})
"""Phases in which a claim may hold leases that are not just being freed."""
OVER = frozenset({Phase.ENDING, Phase.ENDED})
"""Phases of a claim that nobody can use any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLine:
    """One arrow a claim went along."""

    at: datetime
    phase: Phase
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warning_:  # noqa: N801 - Warning is Python's own
    """What will be taken from the claim, by which rule, and when.

    Attributes:
        evidence: What a rule on idle claims rests on; None if others need what it holds.
    """

    rule: str
    deadline: datetime
    reason: str
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerPlace:
    """Where a claim's scheduler runs; `address` is None until it listens."""

    host_id: HostId
    address: str | None = None
    dashboard_port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One user's right to workers.

    Attributes:
        bounds: How many workers it wants now; the request's until it is scaled.
        wanted_since: When it last asked for what it has not yet: its place in line.
        failed_starts: Starts that came to nothing since it last ran.
        expires_at: When it ends by itself; set on the first grant. While it hibernates, until
            when its results are kept.
        latest_end: Beyond that it cannot live, whatever happens: its keys would not hold.
        kept_until: Nothing takes it as idle before: its user has said so.
        end: How it ended or is ending, else None.
        kernels: The Python processes that use it.
        problems: What keeps its processes from their work while it runs.
        hibernation: From the wish for it until its results are back on workers, else None.
        story: Its last arrows, oldest first.
    """

    id: ClaimId
    owner: UserName
    request: ClaimRequest
    phase: Phase
    bounds: WorkerBounds
    created_at: datetime
    phase_since: datetime
    wanted_since: datetime
    reason: str
    failed_starts: int = 0
    scheduler: SchedulerPlace | None = None
    started_at: datetime | None = None
    expires_at: datetime | None = None
    latest_end: datetime | None = None
    warning: Warning_ | None = None
    kept_until: datetime | None = None
    end: EndKind | None = None
    kernels: tuple[Kernel, ...] = ()
    problems: tuple[ProcessProblem, ...] = ()
    hibernation: Hibernation | None = None
    story: tuple[StoryLine, ...] = ()

    @property
    def name(self) -> str:
        """What people call it: the given name, else its id."""
        return self.request.name or self.id

    @property
    def is_over(self) -> bool:
        """Whether it is ending or has ended: nothing brings it back."""
        return self.phase in (Phase.ENDING, Phase.ENDED)


class Effect(StrEnum):
    """What the manager has to do because of an arrow."""

    END_LEASES = "end-leases"
    """Every lease the claim still holds goes to ending, and its scheduler is stopped."""
    REPLAN = "replan"
    """A scheduling pass may now decide something new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What an arrow gives: the claim after it, what has to be done, what people are told."""

    claim: Claim
    kind: EventKind
    reason: str
    effects: tuple[Effect, ...] = ()


class ImpossibleTransition(Conflict):
    """The claim is in no phase in which this can happen; the message says how it came there.

    Attributes:
        story: The claim's last arrows, oldest first.
    """

    reference: ClassVar[str] = "impossible-transition"

    def __init__(self, claim: Claim, event: ClaimEvent) -> None:
        super().__init__(
            f"Claim {claim.name} is {claim.phase}, where this cannot happen to it:"
            f" {claim.reason[:_REASON_SHOWN]}",
            hint="Claim again to go on." if claim.is_over else "Try again when that is done.",
        )
        self.claim = claim
        self.event = event
        self.story = claim.story


def open_claim(claim_id: ClaimId, owner: UserName, request: ClaimRequest, now: datetime) -> Step:
    """A new claim, pending: the arrow from nothing."""
    reason = f"{owner} asks for {plural(request.workers.maximum, 'worker')}."
    claim = Claim(
        id=claim_id,
        owner=owner,
        request=request,
        phase=Phase.PENDING,
        bounds=request.workers,
        created_at=now,
        phase_since=now,
        wanted_since=now,
        reason=reason,
        story=(StoryLine(at=now, phase=Phase.PENDING, reason=reason),),
    )
    return Step(claim=claim, kind=EventKind.CLAIM_PENDING, reason=reason, effects=(Effect.REPLAN,))


def step(claim: Claim, event: ClaimEvent, now: datetime) -> Step:
    """Take one arrow.

    Raises:
        ImpossibleTransition: If the table has no arrow for this event in the claim's phase.
    """
    arrow = ARROWS.get((claim.phase, type(event)))
    if arrow is None:
        raise ImpossibleTransition(claim, event)
    return arrow(claim, event, now)


_E = TypeVar("_E", bound=ClaimEvent)
Arrow = Callable[[Claim, ClaimEvent, datetime], Step]


def _to(claim: Claim, phase: Phase, event: ClaimEvent, now: datetime) -> Claim:
    line = StoryLine(at=now, phase=phase, reason=event.reason)
    return replace(
        claim,
        phase=phase,
        phase_since=now if phase is not claim.phase else claim.phase_since,
        reason=event.reason,
        story=(*claim.story, line)[-_STORY_LENGTH:],
    )


def waiting_to_starting(claim: Claim, event: happened.Granted, now: datetime) -> Step:
    """Its minimum is granted. The clock of its time limit starts with the first grant."""
    if claim.hibernation is not None:
        return _resuming_to_starting(claim, claim.hibernation, event, now)
    life = min(claim.request.time_limit or event.longest_life, event.longest_life)
    after = replace(
        _to(claim, Phase.STARTING, event, now),
        scheduler=SchedulerPlace(host_id=event.scheduler_host),
        expires_at=claim.expires_at or now + life,
        latest_end=claim.latest_end or now + event.longest_life,
    )
    return Step(claim=after, kind=EventKind.CLAIM_STARTING, reason=event.reason)


def _resuming_to_starting(
    claim: Claim, hibernation: Hibernation, event: happened.Granted, now: datetime
) -> Step:
    """Its scheduler is there and its results with it; the clock of its time limit goes on."""
    latest = claim.latest_end or claim.expires_at
    ends = latest if hibernation.left is None else now + hibernation.left
    after = replace(
        _to(claim, Phase.STARTING, event, now),
        expires_at=ends if latest is None or ends is None else min(ends, latest),
    )
    return Step(claim=after, kind=EventKind.CLAIM_STARTING, reason=event.reason)


def starting_to_starting(claim: Claim, event: happened.SchedulerUp, now: datetime) -> Step:
    """Its scheduler listens; the workers may come."""
    return _scheduler_up(claim, event, now, EventKind.CLAIM_STARTING)


def starting_to_running(claim: Claim, event: happened.MinimumUp, now: datetime) -> Step:
    """Everything of its minimum is registered."""
    after = replace(
        _to(claim, Phase.RUNNING, event, now),
        failed_starts=0,
        started_at=claim.started_at or now,
    )
    return Step(claim=after, kind=EventKind.CLAIM_RUNNING, reason=event.reason)


def starting_to_pending(claim: Claim, event: happened.StartFailed, now: datetime) -> Step:
    """A start failed: it waits again in its old place, until the tries are used up."""
    tries = claim.failed_starts + 1
    if claim.hibernation is not None:
        return _resume_failed(claim, event, now, tries)
    if event.final or tries >= MOST_START_TRIES:
        tried = replace(claim, failed_starts=tries)
        ended = happened.EndAsked(kind=EndKind.FAILED, reason=event.reason)
        return any_to_ending(tried, ended, now)
    after = replace(_to(claim, Phase.PENDING, event, now), failed_starts=tries, scheduler=None)
    return Step(
        claim=after,
        kind=EventKind.CLAIM_PENDING,
        reason=event.reason,
        effects=(Effect.END_LEASES, Effect.REPLAN),
    )


def _resume_failed(claim: Claim, event: happened.StartFailed, now: datetime, tries: int) -> Step:
    """It waits again, and hibernates on when the tries are used up: its results are still kept."""
    if event.final or tries >= MOST_START_TRIES:
        return _asleep_again(replace(claim, failed_starts=0), event, now)
    return _resuming_again(replace(claim, failed_starts=tries), event, now)


def _resuming_again(claim: Claim, event: ClaimEvent, now: datetime) -> Step:
    """It waits in its old place, with its results; its time limit does not run meanwhile."""
    after = _to(claim, Phase.RESUMING, event, now)
    return Step(
        claim=replace(after, expires_at=claim.latest_end or claim.expires_at),
        kind=EventKind.CLAIM_RESUMING,
        reason=event.reason,
        effects=(Effect.END_LEASES, Effect.REPLAN),
    )


def _asleep_again(claim: Claim, event: ClaimEvent, now: datetime) -> Step:
    """It waits no more, and does so again only when its user asks for it."""
    known = claim.hibernation or Hibernation(asked_at=now)
    until = known.keep_until or claim.expires_at or now
    after = replace(
        _to(claim, Phase.HIBERNATED, event, now),
        expires_at=until,
        warning=Warning_(rule=KEPT_RESULTS, deadline=until, reason=event.reason),
        hibernation=replace(known, only_asked=True),
    )
    return Step(
        claim=after,
        kind=EventKind.CLAIM_HIBERNATED,
        reason=event.reason,
        effects=(Effect.END_LEASES, Effect.REPLAN),
    )


def starting_withdrawn(claim: Claim, event: happened.Withdrawn, now: datetime) -> Step:
    """What it was starting on is needed more elsewhere: it waits in its old place, untried."""
    if claim.hibernation is not None:
        return _resuming_again(claim, event, now)
    after = replace(_to(claim, Phase.PENDING, event, now), scheduler=None)
    return Step(
        claim=after,
        kind=EventKind.CLAIM_PENDING,
        reason=event.reason,
        effects=(Effect.END_LEASES, Effect.REPLAN),
    )


def running_to_running(claim: Claim, event: happened.WorkersChanged, now: datetime) -> Step:
    """Its workers changed; it runs on."""
    return _changed(_to(claim, claim.phase, event, now), event)


def running_scheduler_up(claim: Claim, event: happened.SchedulerUp, now: datetime) -> Step:
    """Its scheduler's dashboard came up, or its host was adopted by a new agent."""
    return _scheduler_up(claim, event, now, EventKind.CLAIM_CHANGED)


def any_rescaled(claim: Claim, event: happened.Rescaled, now: datetime) -> Step:
    """Its user wants more or fewer workers; more means a new place in line."""
    more = event.bounds.maximum > claim.bounds.maximum
    after = replace(
        _to(claim, claim.phase, event, now),
        bounds=event.bounds,
        wanted_since=now if more and claim.phase not in WAITING else claim.wanted_since,
    )
    kind = EventKind(f"claim.{claim.phase}") if claim.phase is not Phase.RUNNING else None
    return Step(
        claim=after,
        kind=kind or EventKind.CLAIM_CHANGED,
        reason=event.reason,
        effects=(Effect.REPLAN,),
    )


def running_warned(claim: Claim, event: happened.Warned, now: datetime) -> Step:
    """It is told what will be taken from it, and when."""
    warning = Warning_(
        rule=event.rule,
        deadline=now + event.after,
        reason=event.reason,
        evidence=event.evidence,
    )
    return _changed(replace(_to(claim, claim.phase, event, now), warning=warning), event)


def running_cleared(claim: Claim, event: happened.WarningCleared, now: datetime) -> Step:
    """The warning no longer holds."""
    return _changed(replace(_to(claim, claim.phase, event, now), warning=None), event)


def running_hindered(claim: Claim, event: happened.ProblemsChanged, now: datetime) -> Step:
    """Something keeps its processes from their work, or does no longer; it runs on."""
    after = replace(_to(claim, claim.phase, event, now), problems=event.problems)
    return _changed(after, event)


def any_kept(claim: Claim, event: happened.Kept, now: datetime) -> Step:
    """Its user wants it kept for a while, or no longer."""
    until = None if event.duration is None else now + event.duration
    after = replace(_to(claim, claim.phase, event, now), kept_until=until)
    return Step(claim=after, kind=EventKind.CLAIM_KEPT, reason=event.reason)


def running_to_hibernating(claim: Claim, event: happened.HibernateAsked, now: datetime) -> Step:
    """Its results are on their way to safety."""
    after = replace(
        _to(claim, Phase.HIBERNATING, event, now),
        warning=None,
        problems=(),
        kept_until=None,
        hibernation=Hibernation(asked_at=now, otherwise=event.otherwise, resumes=event.resumes),
    )
    return Step(claim=after, kind=EventKind.CLAIM_HIBERNATING, reason=event.reason)


def hibernating_to_running(claim: Claim, event: happened.NotKept, now: datetime) -> Step:
    """Its results cannot be kept: it runs on as if nothing had been, or ends, as was wished."""
    hibernation = claim.hibernation
    if hibernation is not None and hibernation.otherwise is Otherwise.RELEASE:
        ended = happened.EndAsked(kind=EndKind.RECLAIMED, reason=event.reason)
        return any_to_ending(claim, ended, now)
    # Still told as hibernating: what the holder has already has to come back.
    after = _to(claim, Phase.RUNNING, event, now)
    return Step(
        claim=after, kind=EventKind.CLAIM_RUNNING, reason=event.reason, effects=(Effect.REPLAN,)
    )


def hibernating_to_hibernated(claim: Claim, event: happened.ResultsKept, now: datetime) -> Step:
    """Nothing of it needs its devices any more; they are others' once they are proven free."""
    until = now + event.keep_for
    until = until if claim.latest_end is None else min(until, claim.latest_end)
    left = None if claim.expires_at is None else max(timedelta(0), claim.expires_at - now)
    after = replace(
        _to(claim, Phase.HIBERNATED, event, now),
        expires_at=until,
        warning=Warning_(rule=KEPT_RESULTS, deadline=until, reason=event.reason),
        hibernation=replace(
            claim.hibernation or Hibernation(asked_at=now),
            kept_at=now,
            keep_until=until,
            results=event.results,
            result_bytes=event.result_bytes,
            left=left,
        ),
    )
    return Step(
        claim=after,
        kind=EventKind.CLAIM_HIBERNATED,
        reason=event.reason,
        effects=(Effect.END_LEASES, Effect.REPLAN),
    )


def hibernated_to_resuming(claim: Claim, event: happened.ResumeAsked, now: datetime) -> Step:
    """It queues again, like a pending claim, and keeps its results for as long as that takes."""
    after = replace(
        _to(claim, Phase.RESUMING, event, now),
        wanted_since=now,
        warning=None,
        expires_at=claim.latest_end or claim.expires_at,
        hibernation=replace(
            claim.hibernation or Hibernation(asked_at=now), only_asked=False, resumes=False
        ),
    )
    return Step(
        claim=after, kind=EventKind.CLAIM_RESUMING, reason=event.reason, effects=(Effect.REPLAN,)
    )


def resuming_to_hibernated(claim: Claim, event: happened.HibernateAsked, now: datetime) -> Step:
    """Its user has it stop waiting; its results stay where they are."""
    return _asleep_again(claim, event, now)


def running_results_back(claim: Claim, event: happened.ResultsBack, now: datetime) -> Step:
    """Nothing of its hibernation is left."""
    after = replace(_to(claim, claim.phase, event, now), hibernation=None)
    # From now on it can hibernate again, which may be what somebody waits for.
    return replace(_changed(after, event), effects=(Effect.REPLAN,))


def any_results_lost(claim: Claim, event: happened.ResultsLost, now: datetime) -> Step:
    """What kept its results has ended; it is said which are gone, and the claim lives on."""
    known = claim.hibernation or Hibernation(asked_at=now)
    lost = replace(known, again=event.again, gone=event.gone)
    after = replace(_to(claim, claim.phase, event, now), hibernation=lost)
    is_running = claim.phase is Phase.RUNNING
    kind = EventKind.CLAIM_CHANGED if is_running else EventKind(f"claim.{claim.phase}")
    return Step(claim=after, kind=kind, reason=event.reason)


def any_to_ending(claim: Claim, event: happened.EndAsked, now: datetime) -> Step:
    """It is over; what it holds goes back."""
    over = _to(claim, Phase.ENDING, event, now)
    after = replace(
        over, end=event.kind, warning=None, kept_until=None, problems=(), hibernation=None
    )
    return Step(
        claim=after,
        kind=EventKind.CLAIM_ENDING,
        reason=event.reason,
        effects=(Effect.END_LEASES, Effect.REPLAN),
    )


def ending_to_ended(claim: Claim, event: happened.AllFreed, now: datetime) -> Step:
    """Nothing of it is left. The reason of the end stays the reason of the claim."""
    reason = claim.reason
    after = replace(_to(claim, Phase.ENDED, replace(event, reason=reason), now), scheduler=None)
    return Step(claim=after, kind=EventKind.CLAIM_ENDED, reason=reason, effects=(Effect.REPLAN,))


def _changed(claim: Claim, event: ClaimEvent) -> Step:
    return Step(claim=claim, kind=EventKind.CLAIM_CHANGED, reason=event.reason)


def _scheduler_up(
    claim: Claim, event: happened.SchedulerUp, now: datetime, kind: EventKind
) -> Step:
    assert claim.scheduler is not None, "a claim past its grant has a scheduler's place"
    place = replace(claim.scheduler, address=event.address, dashboard_port=event.dashboard_port)
    return Step(
        claim=replace(_to(claim, claim.phase, event, now), scheduler=place),
        kind=kind,
        reason=event.reason,
    )


def _arrow(kind: type[_E], function: Callable[[Claim, _E, datetime], Step]) -> Arrow:
    def take(claim: Claim, event: ClaimEvent, now: datetime) -> Step:
        assert isinstance(event, kind), "the table is keyed by the event's own type"
        return function(claim, event, now)

    return take


_LIVE = tuple(phase for phase in Phase if phase not in (Phase.ENDING, Phase.ENDED))
_KEEPABLE = (Phase.STARTING, Phase.RUNNING)
_KEEPING = (Phase.HIBERNATED, Phase.RESUMING, Phase.STARTING, Phase.RUNNING)
_SCALABLE = (Phase.PENDING, Phase.STARTING, Phase.RUNNING, Phase.RESUMING)

ARROWS: Mapping[tuple[Phase, type[ClaimEvent]], Arrow] = {
    (Phase.PENDING, happened.Granted): _arrow(happened.Granted, waiting_to_starting),
    (Phase.RESUMING, happened.Granted): _arrow(happened.Granted, waiting_to_starting),
    (Phase.STARTING, happened.SchedulerUp): _arrow(happened.SchedulerUp, starting_to_starting),
    (Phase.STARTING, happened.MinimumUp): _arrow(happened.MinimumUp, starting_to_running),
    (Phase.STARTING, happened.StartFailed): _arrow(happened.StartFailed, starting_to_pending),
    (Phase.STARTING, happened.Withdrawn): _arrow(happened.Withdrawn, starting_withdrawn),
    (Phase.RUNNING, happened.WorkersChanged): _arrow(happened.WorkersChanged, running_to_running),
    (Phase.RUNNING, happened.SchedulerUp): _arrow(happened.SchedulerUp, running_scheduler_up),
    (Phase.RUNNING, happened.Warned): _arrow(happened.Warned, running_warned),
    (Phase.RUNNING, happened.WarningCleared): _arrow(happened.WarningCleared, running_cleared),
    (Phase.RUNNING, happened.ProblemsChanged): _arrow(happened.ProblemsChanged, running_hindered),
    (Phase.RUNNING, happened.HibernateAsked): _arrow(
        happened.HibernateAsked, running_to_hibernating
    ),
    (Phase.RESUMING, happened.HibernateAsked): _arrow(
        happened.HibernateAsked, resuming_to_hibernated
    ),
    (Phase.HIBERNATING, happened.NotKept): _arrow(happened.NotKept, hibernating_to_running),
    (Phase.HIBERNATING, happened.ResultsKept): _arrow(
        happened.ResultsKept, hibernating_to_hibernated
    ),
    (Phase.HIBERNATED, happened.ResumeAsked): _arrow(happened.ResumeAsked, hibernated_to_resuming),
    (Phase.RUNNING, happened.ResultsBack): _arrow(happened.ResultsBack, running_results_back),
    **{
        (phase, happened.ResultsLost): _arrow(happened.ResultsLost, any_results_lost)
        for phase in _KEEPING
    },
    (Phase.ENDING, happened.AllFreed): _arrow(happened.AllFreed, ending_to_ended),
    **{(phase, happened.Rescaled): _arrow(happened.Rescaled, any_rescaled) for phase in _SCALABLE},
    **{(phase, happened.Kept): _arrow(happened.Kept, any_kept) for phase in _KEEPABLE},
    **{(phase, happened.EndAsked): _arrow(happened.EndAsked, any_to_ending) for phase in _LIVE},
}
