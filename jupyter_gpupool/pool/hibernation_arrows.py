"""The arrows of hibernation: results to safety, back onto workers, or lost.

In the table of `claim_machine`; `claim_arrows` calls what a claim that comes back does differently
from one that starts for the first time.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from . import claim_events as happened
from .claim import MOST_START_TRIES, Claim, Phase, Warning_
from .claim_events import ClaimEvent, EndKind
from .claim_step import Effect, Step, along, any_to_ending, changed
from .event import EventKind
from .hibernation import KEPT_RESULTS, Hibernation
from .idle_rule import Otherwise


def running_to_hibernating(claim: Claim, event: happened.HibernateAsked, now: datetime) -> Step:
    """Its results are on their way to safety."""
    after = replace(
        along(claim, Phase.HIBERNATING, event, now),
        warning=None,
        problems=(),
        kept_until=None,
        # As many as before it may have again; as few as it wants now.
        bounds=replace(claim.bounds, minimum=0) if event.scaled else claim.bounds,
        hibernation=Hibernation(
            asked_at=now,
            otherwise=event.otherwise,
            resumes=event.resumes,
            only_asked=event.scaled,
            scaled=event.scaled,
        ),
    )
    return Step(claim=after, kind=EventKind.CLAIM_HIBERNATING, reason=event.reason)


def hibernating_room_given(claim: Claim, event: happened.RoomGiven, now: datetime) -> Step:
    """Its results may be moved."""
    known = claim.hibernation or Hibernation(asked_at=now)
    after = replace(
        along(claim, claim.phase, event, now),
        hibernation=replace(known, room_bytes=event.nbytes),
    )
    return Step(claim=after, kind=EventKind.CLAIM_HIBERNATING, reason=event.reason)


def hibernating_to_running(claim: Claim, event: happened.NotKept, now: datetime) -> Step:
    """Its results cannot be kept: it runs on as if nothing had been, or ends, as was wished."""
    hibernation = claim.hibernation
    if hibernation is not None and hibernation.otherwise is Otherwise.RELEASE:
        ended = happened.EndAsked(kind=EndKind.RECLAIMED, reason=event.reason)
        return any_to_ending(claim, ended, now)
    # Still told as hibernating: what the holder has already has to come back.
    after = along(claim, Phase.RUNNING, event, now)
    return Step(
        claim=after, kind=EventKind.CLAIM_RUNNING, reason=event.reason, effects=(Effect.REPLAN,)
    )


def hibernating_to_hibernated(claim: Claim, event: happened.ResultsKept, now: datetime) -> Step:
    """Nothing of it needs its devices any more; they are others' once they are proven free."""
    until = now + event.keep_for
    until = until if claim.latest_end is None else min(until, claim.latest_end)
    left = None if claim.expires_at is None else max(timedelta(0), claim.expires_at - now)
    after = replace(
        along(claim, Phase.HIBERNATED, event, now),
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
        along(claim, Phase.RESUMING, event, now),
        wanted_since=claim.wanted_since if event.keeps_place else now,
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
    after = _asleep_again(claim, event, now)
    if not event.scaled or after.claim.hibernation is None:
        return after
    scaled = replace(after.claim.hibernation, scaled=True)
    return replace(after, claim=replace(after.claim, hibernation=scaled))


def resuming_to_starting(
    claim: Claim, hibernation: Hibernation, event: happened.Granted, now: datetime
) -> Step:
    """Its scheduler is there and its results with it; the clock of its time limit goes on."""
    latest = claim.latest_end or claim.expires_at
    ends = latest if hibernation.left is None else now + hibernation.left
    after = replace(
        along(claim, Phase.STARTING, event, now),
        expires_at=ends if latest is None or ends is None else min(ends, latest),
    )
    return Step(claim=after, kind=EventKind.CLAIM_STARTING, reason=event.reason)


def resume_failed(claim: Claim, event: happened.StartFailed, now: datetime, tries: int) -> Step:
    """It waits again, and hibernates on when the tries are used up: its results are still kept."""
    if event.final or tries >= MOST_START_TRIES:
        return _asleep_again(replace(claim, failed_starts=0), event, now)
    return resuming_again(replace(claim, failed_starts=tries), event, now)


def resuming_again(claim: Claim, event: ClaimEvent, now: datetime) -> Step:
    """It waits in its old place, with its results; its time limit does not run meanwhile."""
    after = along(claim, Phase.RESUMING, event, now)
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
        along(claim, Phase.HIBERNATED, event, now),
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


def running_results_back(claim: Claim, event: happened.ResultsBack, now: datetime) -> Step:
    """Nothing of its hibernation is left, but for what no worker could read."""
    known = claim.hibernation or Hibernation(asked_at=now)
    left = replace(known, unread=event.unread, scaled=False) if event.unread else None
    after = replace(along(claim, claim.phase, event, now), hibernation=left)
    # From now on it can hibernate again, which may be what somebody waits for.
    return replace(changed(after, event), effects=(Effect.REPLAN,))


def any_results_lost(claim: Claim, event: happened.ResultsLost, now: datetime) -> Step:
    """What kept its results has ended; it is said which are gone, and the claim lives on."""
    known = claim.hibernation or Hibernation(asked_at=now)
    lost = replace(known, again=event.again, gone=event.gone)
    after = replace(along(claim, claim.phase, event, now), hibernation=lost)
    is_running = claim.phase is Phase.RUNNING
    kind = EventKind.CLAIM_CHANGED if is_running else EventKind(f"claim.{claim.phase}")
    return Step(claim=after, kind=kind, reason=event.reason)
