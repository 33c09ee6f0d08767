"""What users do to claims, one function a command: request, scale, release; and their expiry.

Called through `Service.execute`, each in a unit of its own.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from jupyter_gpupool.manager.auth.caller import Caller, no_such, require_sight
from jupyter_gpupool.pool.claim import Claim, Phase, open_claim
from jupyter_gpupool.pool.claim_events import EndAsked, EndKind, Rescaled
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds
from jupyter_gpupool.pool.units import plural

from .arrows import end_leases, settle, take
from .once import OnceKey, once
from .records import ClaimRecord
from .unit import UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClaim:
    """A user asks for a claim."""

    caller: Caller
    request: ClaimRequest
    key: OnceKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleClaim:
    """A user wants more or fewer workers."""

    caller: Caller
    claim_id: ClaimId
    bounds: WorkerBounds
    key: OnceKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseClaim:
    """A user gives a claim back."""

    caller: Caller
    claim_id: ClaimId
    reason: str = ""
    key: OnceKey | None = None


def request_claim(unit: UnitOfWork, command: RequestClaim) -> ClaimId:
    """A new pending claim; the pass of the same batch may start it.

    Raises:
        BadRequest: If it wants no worker at all, or its key was used otherwise.
    """
    _refuse_nothing(command.request.workers)
    return ClaimId(once(unit, command.key, lambda: _open(unit, command)))


def scale_claim(unit: UnitOfWork, command: ScaleClaim) -> ClaimId:
    """Other bounds. Fewer: the scheduler chooses who goes, and has until the deadline.

    Raises:
        NotFound: If the caller may not know of it.
        Conflict: If it is over.
    """
    record = owned(unit, command.caller, command.claim_id)
    return ClaimId(once(unit, command.key, lambda: _scale(unit, record.claim, command.bounds)))


def release_claim(unit: UnitOfWork, command: ReleaseClaim) -> ClaimId:
    """End it; what is over already stays as it is.

    Raises:
        NotFound: If the caller may not know of it.
    """
    record = owned(unit, command.caller, command.claim_id)
    return ClaimId(once(unit, command.key, lambda: _release(unit, record.claim, command)))


def expire_claim(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """Its time is up."""
    _end(unit, claim_id, EndKind.EXPIRED, "Its time limit was reached.")


def end_everything(unit: UnitOfWork, reason: str) -> None:
    """End every claim, because the pool itself ends."""
    live = [r.claim for r in unit.claims.values() if not r.claim.is_over]
    for claim in live:
        kind = EndKind.CANCELLED if claim.phase is Phase.PENDING else EndKind.RELEASED
        _end(unit, claim.id, kind, reason)


def shrink_now(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """The scheduler did not choose in time: the youngest workers beyond the bounds go."""
    record = unit.claims.get(claim_id)
    if record is not None and not record.claim.is_over:
        _end_youngest(unit, record.claim, lambda _: True)
        unit.replan = True


def owned(unit: UnitOfWork, caller: Caller, claim_id: ClaimId) -> ClaimRecord:
    """The claim, if the caller may change it.

    Raises:
        NotFound: If there is none, or they may not know of it.
    """
    record = unit.claims.get(claim_id)
    if record is None:
        raise no_such(f"claim {claim_id}")
    require_sight(caller, record.claim.owner, f"claim {claim_id}")
    return record


def _open(unit: UnitOfWork, command: RequestClaim) -> str:
    claim_id = ClaimId(f"c-{secrets.token_hex(8)}")
    opened = open_claim(claim_id, command.caller.user, command.request, unit.now)
    unit.put_claim(ClaimRecord(claim=opened.claim))
    unit.record(opened.kind, opened.reason, owner=opened.claim.owner, claim_id=claim_id)
    unit.replan = True
    return claim_id


def _scale(unit: UnitOfWork, claim: Claim, bounds: WorkerBounds) -> str:
    if claim.phase is Phase.PENDING:
        _refuse_nothing(bounds)
    if bounds != claim.bounds:
        least = "" if bounds.minimum == bounds.maximum else f"{bounds.minimum} to "
        reason = f"Scaled to {least}{plural(bounds.maximum, 'worker')}."
        after = take(unit, claim.id, Rescaled(reason=reason, bounds=bounds))
        # What has not registered yet holds no result, so it needs nobody's choice.
        _end_youngest(unit, after, lambda lease: lease.phase is LeasePhase.GRANTED)
    return claim.id


def _end_youngest(unit: UnitOfWork, claim: Claim, may_go: Callable[[Lease], bool]) -> None:
    leases = [x for x in unit.leases_of(claim.id) if x.phase is not LeasePhase.ENDING]
    surplus = len(leases) - claim.bounds.maximum
    young = sorted(filter(may_go, leases), key=lambda x: (x.granted_at, x.id), reverse=True)
    end_leases(unit, young[: max(0, surplus)], "The claim was scaled down.")


def _release(unit: UnitOfWork, claim: Claim, command: ReleaseClaim) -> str:
    who = "" if command.caller.user == claim.owner else f" by {command.caller.user}"
    why = f": {command.reason}" if command.reason else "."
    if claim.phase is Phase.PENDING:
        _end(unit, claim.id, EndKind.CANCELLED, f"Cancelled{who}{why}")
    else:
        _end(unit, claim.id, EndKind.RELEASED, f"Released{who}{why}")
    return claim.id


def _end(unit: UnitOfWork, claim_id: ClaimId, kind: EndKind, reason: str) -> None:
    record = unit.claims.get(claim_id)
    if record is not None and not record.claim.is_over:
        take(unit, claim_id, EndAsked(kind=kind, reason=reason))
        settle(unit, claim_id)


def _refuse_nothing(bounds: WorkerBounds) -> None:
    if bounds.maximum == 0:
        raise BadRequest(
            "A claim cannot start without any worker.",
            field="workers",
            hint="Ask for at least one; a running claim may be scaled to none.",
        )
