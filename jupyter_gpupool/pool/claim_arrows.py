"""The arrows of a claim from its grant to its end, but for those of hibernation.

In the table of `claim_machine`, (phase, event) → one function named after both ends.
"""

from dataclasses import replace
from datetime import datetime

from . import claim_events as happened
from .claim import MOST_START_TRIES, WAITING, Claim, Phase, SchedulerPlace, Warning_
from .claim_events import EndKind
from .claim_step import Effect, Step, along, any_to_ending, changed
from .event import EventKind
from .hibernation_arrows import resume_failed, resuming_again, resuming_to_starting


def waiting_to_starting(claim: Claim, event: happened.Granted, now: datetime) -> Step:
    """Its minimum is granted. The clock of its time limit starts with the first grant."""
    if claim.hibernation is not None:
        return resuming_to_starting(claim, claim.hibernation, event, now)
    life = min(claim.request.time_limit or event.longest_life, event.longest_life)
    after = replace(
        along(claim, Phase.STARTING, event, now),
        scheduler=SchedulerPlace(host_id=event.scheduler_host),
        expires_at=claim.expires_at or now + life,
        latest_end=claim.latest_end or now + event.longest_life,
    )
    return Step(claim=after, kind=EventKind.CLAIM_STARTING, reason=event.reason)


def starting_to_starting(claim: Claim, event: happened.SchedulerUp, now: datetime) -> Step:
    """Its scheduler listens; the workers may come."""
    return _scheduler_up(claim, event, now, EventKind.CLAIM_STARTING)


def starting_to_running(claim: Claim, event: happened.MinimumUp, now: datetime) -> Step:
    """Everything of its minimum is registered."""
    after = replace(
        along(claim, Phase.RUNNING, event, now),
        failed_starts=0,
        started_at=claim.started_at or now,
    )
    return Step(claim=after, kind=EventKind.CLAIM_RUNNING, reason=event.reason)


def starting_to_pending(claim: Claim, event: happened.StartFailed, now: datetime) -> Step:
    """A start failed: it waits again in its old place, until the tries are used up."""
    tries = claim.failed_starts + 1
    if claim.hibernation is not None:
        return resume_failed(claim, event, now, tries)
    if event.final or tries >= MOST_START_TRIES:
        tried = replace(claim, failed_starts=tries)
        ended = happened.EndAsked(kind=EndKind.FAILED, reason=event.reason)
        return any_to_ending(tried, ended, now)
    after = replace(along(claim, Phase.PENDING, event, now), failed_starts=tries, scheduler=None)
    return Step(
        claim=after,
        kind=EventKind.CLAIM_PENDING,
        reason=event.reason,
        effects=(Effect.END_LEASES, Effect.REPLAN),
    )


def starting_withdrawn(claim: Claim, event: happened.Withdrawn, now: datetime) -> Step:
    """What it was starting on is needed more elsewhere: it waits in its old place, untried."""
    if claim.hibernation is not None:
        return resuming_again(claim, event, now)
    after = replace(along(claim, Phase.PENDING, event, now), scheduler=None)
    return Step(
        claim=after,
        kind=EventKind.CLAIM_PENDING,
        reason=event.reason,
        effects=(Effect.END_LEASES, Effect.REPLAN),
    )


def running_to_running(claim: Claim, event: happened.WorkersChanged, now: datetime) -> Step:
    """Its workers changed; it runs on."""
    return changed(along(claim, claim.phase, event, now), event)


def running_scheduler_up(claim: Claim, event: happened.SchedulerUp, now: datetime) -> Step:
    """Its scheduler's dashboard came up, or its host was adopted by a new agent."""
    return _scheduler_up(claim, event, now, EventKind.CLAIM_CHANGED)


def any_rescaled(claim: Claim, event: happened.Rescaled, now: datetime) -> Step:
    """Its user wants more or fewer workers; more means a new place in line."""
    more = event.bounds.maximum > claim.bounds.maximum
    after = replace(
        along(claim, claim.phase, event, now),
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
    return changed(replace(along(claim, claim.phase, event, now), warning=warning), event)


def running_cleared(claim: Claim, event: happened.WarningCleared, now: datetime) -> Step:
    """The warning no longer holds."""
    return changed(replace(along(claim, claim.phase, event, now), warning=None), event)


def running_hindered(claim: Claim, event: happened.ProblemsChanged, now: datetime) -> Step:
    """Something keeps its processes from their work, or does no longer; it runs on."""
    after = replace(along(claim, claim.phase, event, now), problems=event.problems)
    return changed(after, event)


def any_kept(claim: Claim, event: happened.Kept, now: datetime) -> Step:
    """Its user wants it kept for a while, or no longer."""
    until = None if event.duration is None else now + event.duration
    after = replace(along(claim, claim.phase, event, now), kept_until=until)
    return Step(claim=after, kind=EventKind.CLAIM_KEPT, reason=event.reason)


def ending_to_ended(claim: Claim, event: happened.AllFreed, now: datetime) -> Step:
    """Nothing of it is left. The reason of the end stays the reason of the claim."""
    reason = claim.reason
    after = replace(along(claim, Phase.ENDED, replace(event, reason=reason), now), scheduler=None)
    return Step(claim=after, kind=EventKind.CLAIM_ENDED, reason=reason, effects=(Effect.REPLAN,))


def _scheduler_up(
    claim: Claim, event: happened.SchedulerUp, now: datetime, kind: EventKind
) -> Step:
    assert claim.scheduler is not None, "a claim past its grant has a scheduler's place"
    place = replace(claim.scheduler, address=event.address, dashboard_port=event.dashboard_port)
    return Step(
        claim=replace(along(claim, claim.phase, event, now), scheduler=place),
        kind=kind,
        reason=event.reason,
    )
