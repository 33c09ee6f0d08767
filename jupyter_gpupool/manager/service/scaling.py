"""Other numbers of workers for a claim, and workers that go because there are too many of them.

Called through `Service.execute` by the API and the timer. A claim that is to have no worker
hibernates: what it has computed would be lost with the last one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.claim_events import (
    HibernateAsked,
    MinimumUp,
    NotKept,
    Rescaled,
    ResumeAsked,
)
from jupyter_gpupool.pool.idle_rule import Otherwise
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.pool.request import WorkerBounds
from jupyter_gpupool.pool.units import plural

from .arrows import end_leases, take
from .claims import owned, refuse_nothing
from .hibernating import begin_hibernating, can_hibernate, not_kept, refuse_while_returning
from .once import OnceKey, once
from .staying import stop_moving
from .unit import UnitOfWork

_SLEEPS = (Phase.HIBERNATING, Phase.HIBERNATED)
_TO_NONE = "Scaled to no workers: its results are kept until it is scaled up or resumed."
_NOBODY = "Its last worker had to go, and no other one came in time to take its results."


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleClaim:
    """A user wants more or fewer workers."""

    caller: Caller
    claim_id: ClaimId
    bounds: WorkerBounds
    key: OnceKey | None = None


def scale_claim(unit: UnitOfWork, command: ScaleClaim) -> ClaimId:
    """Other bounds. Fewer: the scheduler chooses who goes, and has until the deadline.

    With none it hibernates until it is scaled up.

    Raises:
        NotFound: If the caller may not know of it.
        BadRequest: If it is to start with none.
        Conflict: If it is over, or hibernates for another reason.
    """
    record = owned(unit, command.caller, command.claim_id)
    return ClaimId(once(unit, command.key, lambda: _scale(unit, record.claim, command.bounds)))


def shrink_now(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """The scheduler did not choose in time: the youngest workers beyond the bounds go."""
    record = unit.claims.get(claim_id)
    if record is not None and not record.claim.is_over:
        _end_surplus(unit, record.claim, lambda _: True)
        unit.replan = True


def retire_now(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """Workers that hand over their results for too long go as they are; the last ones hibernate."""
    leases = list(unit.leases_of(claim_id))
    retiring = [lease for lease in leases if lease.phase is LeasePhase.RETIRING]
    if not retiring:
        return
    if _nobody_takes_over(unit, claim_id, leases):
        # Nobody registered to whom they could hand over: they would be lost for good.
        notices = [lease.notice for lease in retiring if lease.notice is not None]
        ends = any(not notice.only_if_kept for notice in notices)
        otherwise = Otherwise.RELEASE if ends else Otherwise.LEAVE
        asked = HibernateAsked(reason=_NOBODY, otherwise=otherwise, resumes=True)
        begin_hibernating(unit, claim_id, asked)
    else:
        end_leases(unit, retiring, "Its worker did not hand over its results in time.")
    unit.replan = True


def _nobody_takes_over(unit: UnitOfWork, claim_id: ClaimId, leases: Iterable[Lease]) -> bool:
    record = unit.claims.get(claim_id)
    runs = any(lease.phase is LeasePhase.RUNNING for lease in leases)
    return record is not None and can_hibernate(record.claim) and not runs


def _scale(unit: UnitOfWork, claim: Claim, bounds: WorkerBounds) -> str:
    if bounds.maximum == 0:
        _scale_to_none(unit, claim, bounds)
        return claim.id
    least = "" if bounds.minimum == bounds.maximum else f"{bounds.minimum} to "
    reason = f"Scaled to {least}{plural(bounds.maximum, 'worker')}."
    if claim.phase in _SLEEPS and claim.hibernation is not None and claim.hibernation.scaled:
        claim = _wake(unit, claim, reason)
    if bounds != claim.bounds:
        after = take(unit, claim.id, Rescaled(reason=reason, bounds=bounds))
        # What has not registered yet holds no result, so it needs nobody's choice; nor does
        # anything as long as nobody could reach the scheduler.
        unreached = after.scheduler is None or after.scheduler.address is None
        _end_surplus(unit, after, lambda lease: unreached or lease.phase is LeasePhase.GRANTED)
        _run_if_enough(unit, after)
    return claim.id


def _scale_to_none(unit: UnitOfWork, claim: Claim, bounds: WorkerBounds) -> None:
    asked = HibernateAsked(reason=_TO_NONE, scaled=True)
    if claim.phase in _SLEEPS:
        stop_moving(unit, claim.id)
        return  # it has none, and is about to have none
    if claim.phase in (Phase.PENDING, Phase.STARTING):
        refuse_nothing(bounds)
    if claim.phase is Phase.RUNNING:
        refuse_while_returning(claim)
        begin_hibernating(unit, claim.id, asked)
    else:
        take(unit, claim.id, asked)
    stop_moving(unit, claim.id)


def _wake(unit: UnitOfWork, claim: Claim, reason: str) -> Claim:
    """Have one that was scaled to none get its workers again, or keep those that it has still."""
    if claim.phase is Phase.HIBERNATED:
        return take(unit, claim.id, ResumeAsked(reason=reason))
    not_kept(unit, claim.id, NotKept(reason=reason))
    return unit.claims[claim.id].claim


def _run_if_enough(unit: UnitOfWork, claim: Claim) -> None:
    """With fewer workers to wait for, a claim that is starting may have all it needs."""
    place = claim.scheduler
    if claim.phase is not Phase.STARTING or place is None or place.address is None:
        return
    running = sum(x.phase is LeasePhase.RUNNING for x in unit.leases_of(claim.id))
    if running >= max(1, claim.bounds.minimum):
        reason = f"{plural(running, 'worker')} registered, which is enough now."
        take(unit, claim.id, MinimumUp(reason=reason))


def _end_surplus(unit: UnitOfWork, claim: Claim, may_go: Callable[[Lease], bool]) -> None:
    # Those that retire already are chosen: the others may hold what they have handed over.
    leases = [lease for lease in unit.leases_of(claim.id) if lease.counts]
    surplus = max(0, len(leases) - claim.bounds.maximum)
    young = sorted(filter(may_go, leases), key=lambda x: (x.granted_at, x.id), reverse=True)
    young.sort(key=lambda lease: lease.phase is not LeasePhase.GRANTED)
    end_leases(unit, young[:surplus], "The claim was scaled down.")
