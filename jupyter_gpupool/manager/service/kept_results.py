"""What a scheduler's word on its claim's results means for a claim that hibernates: pure.

Called by `digest.py` for each report of the host where scheduler and holder are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.claim_events import (
    ClaimEvent,
    NotKept,
    ResultsBack,
    ResultsKept,
    ResultsLost,
    ResumeAsked,
    RoomGiven,
)
from jupyter_gpupool.pool.hibernation import Hibernation, HibernationTerms
from jupyter_gpupool.pool.units import format_bytes, format_duration, plural
from jupyter_gpupool.protocol.keeping import Keeping, KeepPhase, Unkept, UnkeptReason, Wish
from jupyter_gpupool.protocol.link import HolderReport, ProcessPhase

from .records import ClaimRecord
from .standing import View

_MOST_NAMED = 3
_LONGEST_KEY = 60
_WHY = {
    UnkeptReason.ACTOR: "is an actor, which cannot move",
    UnkeptReason.UNWRITABLE: "cannot be serialised",
    UnkeptReason.UNREADABLE: "could not be read back",
    UnkeptReason.TOO_LARGE: "is more than a claim may keep",
    UnkeptReason.NO_ROOM: "finds no room: the disk of its scheduler's host is full",
}
_GONE = (ProcessPhase.FAILED, ProcessPhase.RETIRED)


@dataclass(frozen=True, slots=True)
class Room:
    """Whether results have room; if not, the objection says why."""

    objection: str


def keeping_events(
    claim: Claim,
    keeping: Keeping | None,
    holder: HolderReport | None,
    terms: HibernationTerms,
    *,
    room: Room | None = None,
) -> Iterator[ClaimEvent]:
    """What happened to a claim that hibernates, or has not all its results back yet.

    Args:
        claim: As it was before.
        keeping: What its scheduler says.
        holder: What its host says of its holder.
        terms: The policy's.
        room: Whether its results have room, if it waits to hear that; else None.
    """
    if claim.hibernation is None or keeping is None:
        return
    itself = terms.resumes_itself and not claim.hibernation.only_asked
    if claim.phase is Phase.HIBERNATING:
        told = list(_while_hibernating(keeping, holder, replace(terms, resumes_itself=itself)))
        yield from told or ([] if room is None else _with_room(keeping, room))
        return
    known = (claim.hibernation.again, claim.hibernation.gone)
    if keeping.wish is Wish.HIBERNATED and (keeping.again, keeping.gone) != known:
        yield ResultsLost(reason=keeping.problem, again=keeping.again, gone=keeping.gone)
    if claim.phase is Phase.HIBERNATED and itself:
        yield from _resumes(claim.hibernation, keeping)
    if claim.phase is Phase.RUNNING and _has_ended(keeping):
        yield from _back(claim, claim.hibernation, keeping)


def keeping_of_claim(view: View, record: ClaimRecord) -> Keeping | None:
    """Where a claim's results are, by the last report of its scheduler's host."""
    place = record.claim.scheduler
    report = None if place is None else view.reports.get(place.host_id)
    schedulers = () if report is None else report.schedulers
    found = (x for x in schedulers if (x.claim_id, x.start) == (record.claim.id, record.start))
    scheduler = next(found, None)
    return None if scheduler is None else scheduler.keeping


def unkept_in_words(unkept: tuple[Unkept, ...], count: int) -> str:
    """Which results cannot be kept and why, the first of them by name; "" if all can."""
    named = [f"{_short(each.key)} {_WHY[each.reason]}" for each in unkept[:_MOST_NAMED]]
    more = max(count, len(unkept)) - len(named)
    return "; ".join([*named, *([f"{more} more"] if more > 0 else [])])


def _while_hibernating(
    keeping: Keeping, holder: HolderReport | None, terms: HibernationTerms
) -> Iterator[ClaimEvent]:
    if keeping.wish is Wish.HIBERNATED and keeping.phase in (KeepPhase.HIBERNATED, KeepPhase.LOST):
        yield ResultsKept(
            reason=_kept(keeping, terms),
            results=keeping.held,
            result_bytes=keeping.held_bytes,
            keep_for=timedelta(seconds=terms.keep_s),
        )
    elif keeping.wish is Wish.HIBERNATED and keeping.phase is KeepPhase.REFUSED:
        why = unkept_in_words(keeping.unkept, keeping.unkept_count) or keeping.problem
        yield NotKept(reason=f"Its results cannot be kept: {why.removesuffix('.')}.")
    elif holder is not None and holder.phase in _GONE:
        why = holder.problem or "it ended"
        yield NotKept(reason=f"Its results cannot be kept, for nothing holds them: {why}")


def _with_room(keeping: Keeping, room: Room) -> Iterator[ClaimEvent]:
    if not keeping.surveyed or keeping.wish is not Wish.HIBERNATED:
        return
    if room.objection:
        yield NotKept(reason=f"Its results cannot be kept: {room.objection}.")
    else:
        size = format_bytes(keeping.result_bytes)
        reason = f"{plural(keeping.results, 'result')} ({size}) on their way to safety."
        yield RoomGiven(reason=reason, nbytes=keeping.result_bytes)


def _resumes(hibernation: Hibernation, keeping: Keeping) -> Iterator[ClaimEvent]:
    if keeping.wanted:
        yield ResumeAsked(reason="A task was submitted.")
    elif hibernation.resumes:
        yield ResumeAsked(reason="It was at work when its devices went to others: it waits again.")


def _kept(keeping: Keeping, terms: HibernationTerms) -> str:
    if keeping.problem:
        return keeping.problem
    if not keeping.held:
        return f"It had no finished results; {_wakes(terms)}."
    what = f"{plural(keeping.held, 'result')} ({format_bytes(keeping.held_bytes)})"
    return f"{what} kept for {format_duration(terms.keep_s)} at most; its devices are given back."


def _wakes(terms: HibernationTerms) -> str:
    if terms.resumes_itself:
        return "a task that is submitted has it wait for devices again"
    return "what is submitted waits until it is resumed"


def _has_ended(keeping: Keeping) -> bool:
    """Whether nothing is on its way back any more."""
    return keeping.phase is KeepPhase.AWAKE and keeping.wish is not Wish.HIBERNATED


def _back(claim: Claim, hibernation: Hibernation, keeping: Keeping) -> Iterator[ClaimEvent]:
    if not keeping.held:
        # Of one that was never kept it is to be read why, for as long as nothing else happens.
        is_back = hibernation.kept_at is not None
        reason = "All its results are on its workers." if is_back else claim.reason
        yield ResultsBack(reason=reason)
    elif keeping.unread and keeping.unread != hibernation.unread:
        yield ResultsBack(reason=_unread(keeping), unread=keeping.unread)


def _unread(keeping: Keeping) -> str:
    named = [_with_error(each) for each in keeping.unkept[:_MOST_NAMED]]
    named += [f"{more} more"] if named and (more := keeping.unread - len(named)) > 0 else []
    which = ": " + "; ".join(named) if named else ""
    why = f" {keeping.problem}" if keeping.problem else ""
    verb = "stays" if keeping.unread == 1 else "stay"
    return (
        f"{plural(keeping.unread, 'result')} no worker could read, which {verb} kept{which}."
        f"{why} All others are on its workers."
    )


def _with_error(unkept: Unkept) -> str:
    return f"{_short(unkept.key)} ({unkept.detail or _WHY[unkept.reason]})"


def _short(key: str) -> str:
    return key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}…"
