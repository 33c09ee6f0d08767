"""Taking leases back from a claim: notice, grace, and the end of it.

Called by `planning.py` with what a pass decided, and by the timer when a grace is over. A claim
that keeps no device hibernates; only if its results cannot be kept does it end.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.claim_events import (
    EndAsked,
    EndKind,
    HibernateAsked,
    Warned,
    WarningCleared,
    Withdrawn,
    WorkersChanged,
)
from jupyter_gpupool.pool.idle_rule import Otherwise
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.lease import Lease, LeasePhase, Notice
from jupyter_gpupool.pool.units import plural
from jupyter_gpupool.scheduling.decisions import Notice as Announcement
from jupyter_gpupool.scheduling.decisions import Promise, Take, TakeHow
from jupyter_gpupool.scheduling.shape import HeldWorker

from .arrows import end_leases, settle, take
from .hibernating import begin_hibernating, can_hibernate
from .idle_subjects import hibernation_possible
from .records import ClaimRecord
from .staying import RECLAIM, is_asked_gently, stay
from .unit import UnitOfWork

RESERVATION: Final = "reservation"
"""The rule by which a claim is warned: what it holds is reserved for another queue."""


def take_back(
    unit: UnitOfWork, decided: Take, promises: Iterable[Promise], *, only_if_kept: bool
) -> None:
    """Give notice of what a pass takes, or take it at once where nothing is lost by that.

    Args:
        unit: Where it is written down.
        decided: What is taken.
        promises: All that the same pass promises anybody.
        only_if_kept: A claim that would keep nothing stays if its results cannot be kept.
    """
    claim = unit.claims[decided.claim_id].claim
    leases = asked_back(unit, decided)
    if claim.phase is Phase.STARTING:
        stop_starting(unit, decided)
        return
    grace = timedelta(seconds=unit.policy.policy.grace_s if decided.busy else 0.0)
    notice = Notice(
        deadline=unit.now + grace,
        claimants=_claimants(decided, promises),
        only_if_kept=only_if_kept,
    )
    for lease in leases:
        unit.put_lease(replace(lease, notice=notice))
    if grace:
        take(unit, claim.id, Warned(reason=decided.reason, rule=RECLAIM, after=grace))
    else:
        take_now(unit, claim.id, decided.reason, resumes=decided.busy)


def asked_back(unit: UnitOfWork, decided: Take | Announcement) -> list[Lease]:
    """The leases of a claim that are asked of it and that it still has."""
    # Two workers of one claim may have parts of the same device: as many go as are asked for.
    wanted, found = Counter(decided.workers), list[Lease]()
    for lease in unit.leases_of(decided.claim_id):
        worker = HeldWorker(lease.host_id, lease.devices)
        if lease.counts and wanted[worker]:
            wanted[worker] -= 1
            found.append(lease)
    return found


def stop_starting(unit: UnitOfWork, decided: Take | Announcement) -> None:
    """Take from a claim that is starting: nobody loses a result, and there is nobody to warn."""
    if decided.how is TakeHow.SHRINK:
        end_leases(unit, asked_back(unit, decided), decided.reason)
    else:
        take(unit, decided.claim_id, Withdrawn(reason=decided.reason))


def take_now(
    unit: UnitOfWork, claim_id: ClaimId, reason: str = "", *, resumes: bool = True
) -> None:
    """The grace is over: whatever is due goes. A claim that keeps nothing of it hibernates.

    Args:
        unit: Where it is written down.
        claim_id: Whose leases they are.
        reason: Told to its user; if there is none, what it was warned of.
        resumes: It was at work, and goes on with it as soon as it has devices again.
    """
    record = unit.claims.get(claim_id)
    if record is None or record.claim.is_over:
        return
    leases = [lease for lease in unit.leases_of(claim_id) if lease.counts]
    noticed = [(x.notice.deadline, x) for x in leases if x.notice is not None]
    if not noticed:
        return
    # Whoever calls knows by a clock that nobody sets that the soonest of them is over.
    until = max(unit.now, min(deadline for deadline, _ in noticed))
    due = [lease for deadline, lease in noticed if deadline <= until]
    if len(due) == len(leases) and _is_coming_back(unit, record.claim, noticed[0][0]):
        return  # its results would be lost; the timer asks again in some seconds
    warning = record.claim.warning
    why = reason or ("It was needed elsewhere." if warning is None else warning.reason)
    if len(due) == len(leases):
        _take_all(unit, record, why, resumes=resumes)
    else:
        _shrink(unit, claim_id, due, why)
    unit.replan = True


def _take_all(unit: UnitOfWork, record: ClaimRecord, why: str, *, resumes: bool) -> None:
    """It hibernates; if that cannot be, it stays or ends, as it was asked."""
    claim_id, may_stay = record.claim.id, is_asked_gently(unit, record.claim.id)
    if may_stay and not hibernation_possible(unit, record):
        stay(unit, claim_id, "It keeps what it has, for its results cannot be kept.")
    elif can_hibernate(record.claim):
        otherwise = Otherwise.LEAVE if may_stay else Otherwise.RELEASE
        asked = HibernateAsked(reason=why, otherwise=otherwise, resumes=resumes)
        begin_hibernating(unit, claim_id, asked)
    else:
        take(unit, claim_id, EndAsked(kind=EndKind.RECLAIMED, reason=why))
        settle(unit, claim_id)


def _is_coming_back(unit: UnitOfWork, claim: Claim, due: datetime) -> bool:
    """Whether its results are on their way to its workers; what never arrives is not waited for."""
    within = timedelta(seconds=unit.moment.settings.retire_within_s)
    is_resumed = claim.phase is Phase.RUNNING and claim.awaits_results
    return is_resumed and unit.now < due + within


def clear_void(unit: UnitOfWork, promised: frozenset[ClaimId]) -> None:
    """Take back notices that nobody needs any more, for whoever waited has gone elsewhere."""
    void = [
        lease
        for lease in unit.noticed()
        if lease.counts and lease.notice and promised.isdisjoint(lease.notice.claimants)
    ]
    for lease in void:
        unit.put_lease(replace(lease, notice=None))
    # A lease that was warned of may have gone by itself, too: its worker died, or its host.
    for claim_id in sorted(record.claim.id for record in unit.warned()):
        _clear_warning(unit, claim_id, "What it was warned of is needed no more.")


def _claimants(decided: Take, promises: Iterable[Promise]) -> tuple[ClaimId, ...]:
    """For whom: the one it names, and all who are promised any of it."""
    freed = {uuid for worker in decided.workers for uuid in worker.devices}
    others = (p.claim_id for p in promises if any(freed.intersection(w.devices) for w in p.workers))
    return tuple(dict.fromkeys((decided.claimant, *others)))


def _shrink(unit: UnitOfWork, claim_id: ClaimId, due: list[Lease], why: str) -> None:
    # A worker that never registered holds no result; the others hand theirs over first.
    young = [lease for lease in due if lease.phase is LeasePhase.GRANTED]
    end_leases(unit, young, why)
    for lease in due:
        if lease.phase is LeasePhase.RUNNING:
            unit.put_lease(lease.moved(LeasePhase.RETIRING, why, unit.now))
    if unit.claims[claim_id].claim.warning is None:
        take(unit, claim_id, WorkersChanged(reason=why))
    else:
        _clear_warning(unit, claim_id, f"{plural(len(due), 'worker')} less: {why}")


def _clear_warning(unit: UnitOfWork, claim_id: ClaimId, reason: str) -> None:
    claim = unit.claims[claim_id].claim
    under = any(x.counts and x.notice is not None for x in unit.leases_of(claim_id))
    warning = claim.warning
    # A rule on idle claims may be named so, too; it has evidence.
    if warning and warning.rule == RECLAIM and warning.evidence is None and not under:
        take(unit, claim_id, WarningCleared(reason=reason))
