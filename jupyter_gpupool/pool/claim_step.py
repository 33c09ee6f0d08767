"""What taking an arrow gives, the arrows into and out of every life, and what arrows share.

Used by `claim_arrows` and `hibernation_arrows`; `open_claim` is called by the manager's service.
Pure: time is passed in.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from . import claim_events as happened
from .claim import Claim, Phase, StoryLine
from .claim_events import ClaimEvent
from .event import EventKind
from .ids import ClaimId, UserName
from .request import ClaimRequest
from .units import plural

_STORY_LENGTH = 12


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


def any_to_ending(claim: Claim, event: happened.EndAsked, now: datetime) -> Step:
    """It is over; what it holds goes back."""
    over = along(claim, Phase.ENDING, event, now)
    after = replace(
        over, end=event.kind, warning=None, kept_until=None, problems=(), hibernation=None
    )
    return Step(
        claim=after,
        kind=EventKind.CLAIM_ENDING,
        reason=event.reason,
        effects=(Effect.END_LEASES, Effect.REPLAN),
    )


def along(claim: Claim, phase: Phase, event: ClaimEvent, now: datetime) -> Claim:
    """The claim in a phase, with the event's reason and one line more in its story."""
    line = StoryLine(at=now, phase=phase, reason=event.reason)
    return replace(
        claim,
        phase=phase,
        phase_since=now if phase is not claim.phase else claim.phase_since,
        reason=event.reason,
        story=(*claim.story, line)[-_STORY_LENGTH:],
    )


def changed(claim: Claim, event: ClaimEvent) -> Step:
    """People are told that it is other than before; there is nothing to do."""
    return Step(claim=claim, kind=EventKind.CLAIM_CHANGED, reason=event.reason)
