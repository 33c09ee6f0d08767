"""A claim keeps its devices after all, for its results cannot be kept without them.

Called when that is found out, of those who are asked only if nothing of theirs is lost by it: by
moves, and under attained service. Others had a better right and waited: what they were promised is
void, and the next pass decides without this claim.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import Warned, WarningCleared
from jupyter_gpupool.pool.ids import ClaimId

from .arrows import take
from .unit import UnitOfWork

RECLAIM: Final = "reclaim"
"""The rule by which a claim is warned: others have a better right to what it holds."""
ASKED_AGAIN_S: Final = 3600.0
"""For so long a claim that stayed is not asked to hibernate for others."""


def is_asked_gently(unit: UnitOfWork, claim_id: ClaimId) -> bool:
    """Whether anything is taken from a claim only if its results can be kept."""
    notices = (lease.notice for lease in unit.leases_of(claim_id))
    return any(notice is not None and notice.only_if_kept for notice in notices)


def stay(unit: UnitOfWork, claim_id: ClaimId, reason: str) -> None:
    """Nothing is taken from it, whoever waits for that; it is not asked again for an hour."""
    for lease in list(unit.leases_of(claim_id)):
        if lease.notice is not None:
            for claimant in lease.notice.claimants:
                break_promise(unit, claimant)
            unit.put_lease(replace(lease, notice=None))
    record = unit.claims[claim_id]
    promised = record.promised if record.moving is None else ()
    unit.put_claim(replace(record, moving=None, promised=promised, stayed_at=unit.now))
    claim = record.claim
    if claim.phase is Phase.RUNNING and claim.warning is not None:
        take(unit, claim_id, WarningCleared(reason=reason))
    unit.replan = True


def warn_again(unit: UnitOfWork, claim_id: ClaimId, reason: str) -> None:
    """It runs on, and what it was to give before it was to hibernate is still due."""
    noticed = (lease.notice for lease in unit.leases_of(claim_id) if lease.counts)
    due = min((notice.deadline for notice in noticed if notice is not None), default=None)
    if due is not None:
        told = f"{reason} Others still need what it was told it has to give."
        after = max(timedelta(0), due - unit.now)
        take(unit, claim_id, Warned(reason=told, rule=RECLAIM, after=after))


def break_promise(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """Keep nothing for it any more: not all of it can be freed."""
    record = unit.claims.get(claim_id)
    if record is not None and record.promised:
        unit.put_claim(replace(record, promised=()))


def is_under_notice(unit: UnitOfWork, claim_id: ClaimId) -> bool:
    """Whether anything of it will be taken and has not gone yet."""
    return any(lease.counts and not lease.stays for lease in unit.leases_of(claim_id))


def stop_moving(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """It goes nowhere: whom it is for needs it no more, the way is shut, or its user says so.

    If it has not begun to give anything, nobody is promised that any more.
    """
    record = unit.claims[claim_id]
    if record.moving is None:
        return
    if is_under_notice(unit, claim_id):
        break_promise(unit, record.moving.claimant)
    unit.put_claim(replace(unit.claims[claim_id], moving=None, promised=()))
    unit.replan = True
