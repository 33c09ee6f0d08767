"""What users do to claims, one function a command: request, release; and their expiry.

Called through `Service.execute`, each in a unit of its own.
"""

import secrets
from dataclasses import dataclass, replace

from jupyter_gpupool.manager.auth.caller import Caller, no_such, require_sight
from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.claim_events import EndAsked, EndKind
from jupyter_gpupool.pool.claim_step import open_claim
from jupyter_gpupool.pool.errors import BadRequest, Conflict
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds
from jupyter_gpupool.pool.units import format_duration, plural

from .arrows import fail_start, settle, take
from .environments import check_environment
from .once import OnceKey, once
from .records import ClaimRecord
from .unit import UnitOfWork
from .worker_shapes import check_pools


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClaim:
    """A user asks for a claim."""

    caller: Caller
    request: ClaimRequest
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
        BadRequest: If it wants no worker at all, an environment, a queue or a priority that nobody
            has, its deadline is over, or its key was used otherwise.
        NotAllowed: If it wants a queue that is not its user's.
        Conflict: If its user has too many claims already, or its environment cannot be used.
    """
    refuse_nothing(command.request.workers)
    return ClaimId(once(unit, command.key, lambda: _open(unit, command)))


def release_claim(unit: UnitOfWork, command: ReleaseClaim) -> ClaimId:
    """End it; what is over already stays as it is.

    Raises:
        NotFound: If the caller may not know of it.
    """
    record = owned(unit, command.caller, command.claim_id)
    return ClaimId(once(unit, command.key, lambda: _release(unit, record.claim, command)))


def expire_claim(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """Its time is up."""
    record = unit.claims.get(claim_id)
    hibernates = record is not None and record.claim.phase is Phase.HIBERNATED
    why = "Its results were kept for as long as the pool keeps any." if hibernates else ""
    _end(unit, claim_id, EndKind.EXPIRED, why or "Its time limit was reached.")


def end_everything(unit: UnitOfWork, reason: str) -> None:
    """End every claim, because the pool itself ends."""
    live = [r.claim for r in unit.claims.values() if not r.claim.is_over]
    for claim in live:
        kind = EndKind.CANCELLED if claim.phase is Phase.PENDING else EndKind.RELEASED
        _end(unit, claim.id, kind, reason)


def start_too_slow(unit: UnitOfWork, claim_id: ClaimId, start: int) -> None:
    """This start has taken too long: whoever is not up is given up."""
    record = unit.claims.get(claim_id)
    if record is None or record.claim.phase is not Phase.STARTING or record.start != start:
        return
    place, leases = record.claim.scheduler, list(unit.leases_of(claim_id))
    late = {lease.host_id for lease in leases if lease.phase is LeasePhase.GRANTED}
    running = sum(lease.phase is LeasePhase.RUNNING for lease in leases)
    what = f"{running} of {plural(len(leases), 'worker')} registered"
    if place is not None and place.address is None:
        late, what = {place.host_id}, "its scheduler did not listen"
    within_s = unit.moment.settings.start_within_s
    fail_start(
        unit, claim_id, f"It did not start within {format_duration(within_s)}: {what}.", late
    )


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


def refuse_nothing(bounds: WorkerBounds) -> None:
    """See that a claim that does not run yet is to have any worker.

    Raises:
        BadRequest: If it is to have none.
    """
    if bounds.maximum == 0:
        raise BadRequest(
            "A claim cannot start without any worker.",
            field="workers",
            hint="Ask for at least one; a running claim that is scaled to none hibernates.",
        )


def _open(unit: UnitOfWork, command: RequestClaim) -> str:
    _refuse_past(unit, command.request)
    _refuse_too_many(unit, command.caller.user)
    check_environment(unit, command.request)
    check_pools(unit, command.request)
    request = _placed_in_line(unit, command)
    claim_id = ClaimId(f"c-{secrets.token_hex(8)}")
    opened = open_claim(claim_id, command.caller.user, request, unit.now)
    unit.put_claim(ClaimRecord(claim=opened.claim))
    unit.record(opened.kind, opened.reason, owner=opened.claim.owner, claim_id=claim_id)
    unit.arrived.append(claim_id)
    return claim_id


def _placed_in_line(unit: UnitOfWork, command: RequestClaim) -> ClaimRequest:
    """The request with its queue, fixed here: a claim does not move when its owner does."""
    user, request, policy = command.caller.user, command.request, unit.policy.policy
    queue = policy.queue_for(user, request.queue)
    policy.priority_class(request.priority)
    most = unit.policy.tree.queues[queue].user_limits.claims
    # Only then is it worth looking at every claim.
    if most is not None and _open_in(unit, user, queue) >= most:
        raise Conflict(
            f'You have {plural(most, "claim")} in queue "{queue}", and it allows no more.',
            hint="Release some, or ask for several workers with one claim.",
        )
    return replace(request, queue=queue)


def _open_in(unit: UnitOfWork, user: UserName, queue: str) -> int:
    mine = (r.claim for r in unit.claims.values() if r.claim.owner == user and not r.claim.is_over)
    return sum(claim.request.queue == queue for claim in mine)


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


def _refuse_too_many(unit: UnitOfWork, user: UserName) -> None:
    most = unit.moment.settings.most_claims_a_user
    if unit.live_claims_of(user) >= most:
        raise Conflict(
            f"You have {plural(most, 'claim')} that live, and the pool allows no more.",
            hint="Release some, or ask for several workers with one claim.",
        )


def _refuse_past(unit: UnitOfWork, request: ClaimRequest) -> None:
    if request.deadline is not None and request.deadline <= unit.now:
        raise BadRequest(
            "The deadline is over already.",
            field="deadline",
            hint="Give one that is ahead, or leave it out.",
        )
