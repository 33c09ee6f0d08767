"""A claim's state machine: the only code that changes a claim's phase.

Called by the manager's service, one call a database transaction. The table is section 4 of the
design: (phase, event) → one function named after both ends. Pure: time is passed in.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar, TypeVar

from . import claim_events as happened
from .claim import Claim, Phase
from .claim_arrows import (
    any_kept,
    any_rescaled,
    ending_to_ended,
    running_cleared,
    running_hindered,
    running_scheduler_up,
    running_to_running,
    running_warned,
    starting_to_pending,
    starting_to_running,
    starting_to_starting,
    starting_withdrawn,
    waiting_to_starting,
)
from .claim_events import ClaimEvent
from .claim_step import Step, any_to_ending
from .errors import Conflict
from .hibernation_arrows import (
    any_results_lost,
    hibernated_to_resuming,
    hibernating_room_given,
    hibernating_to_hibernated,
    hibernating_to_running,
    resuming_to_hibernated,
    running_results_back,
    running_to_hibernating,
)

_REASON_SHOWN = 200


_WISHES: Mapping[type[ClaimEvent], str] = {
    happened.Rescaled: "be scaled",
    happened.Kept: "be kept",
    happened.HibernateAsked: "hibernate",
    happened.ResumeAsked: "be resumed",
    happened.EndAsked: "be ended",
}
"""What its user wants of a claim."""
_OTHER = "have this happen to it"


class ImpossibleTransition(Conflict):
    """The claim is in no phase in which this can happen; the message says how it came there.

    Attributes:
        story: The claim's last arrows, oldest first.
    """

    reference: ClassVar[str] = "impossible-transition"

    def __init__(self, claim: Claim, event: ClaimEvent) -> None:
        super().__init__(
            f"Claim {claim.name} is {claim.phase}, so it cannot"
            f" {_WISHES.get(type(event), _OTHER)} now: {claim.reason[:_REASON_SHOWN]}",
            hint="Claim again to go on." if claim.is_over else "Try again when that is done.",
        )
        self.claim = claim
        self.event = event
        self.story = claim.story


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
    (Phase.HIBERNATING, happened.RoomGiven): _arrow(happened.RoomGiven, hibernating_room_given),
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
