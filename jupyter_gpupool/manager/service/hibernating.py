"""Hibernating and resuming claims, one function a command: by their users, rules, and for others.

Called through `Service.execute` by the API and the timer, and by whatever takes devices back.
"""

from dataclasses import dataclass

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.claim_events import HibernateAsked, NotKept, ResumeAsked
from jupyter_gpupool.pool.errors import Conflict
from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.link import ProcessPhase

from .arrows import end_leases, take
from .claims import owned
from .once import OnceKey, once
from .staying import is_asked_gently, stay, stop_moving, warn_again
from .unit import UnitOfWork

_UNDER_WAY = frozenset({Phase.HIBERNATING, Phase.HIBERNATED})
_RESUMED = frozenset({Phase.RESUMING, Phase.STARTING, Phase.RUNNING})


@dataclass(frozen=True, slots=True, kw_only=True)
class HibernateClaim:
    """A user wants a claim's devices given back and its results kept."""

    caller: Caller
    claim_id: ClaimId
    reason: str = ""
    key: OnceKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeClaim:
    """A user wants devices again for a claim that hibernates."""

    caller: Caller
    claim_id: ClaimId
    key: OnceKey | None = None


def hibernate_claim(unit: UnitOfWork, command: HibernateClaim) -> ClaimId:
    """Begin to keep its results; one that does so already goes on, one that resumes waits no more.

    Raises:
        NotFound: If the caller may not know of it.
        Conflict: If it does not run, or its results are still coming back.
    """
    claim = owned(unit, command.caller, command.claim_id).claim
    who = "" if command.caller.user == claim.owner else f" by {command.caller.user}"
    why = f": {command.reason}" if command.reason else "."
    return ClaimId(
        once(unit, command.key, lambda: _hibernate(unit, claim, f"Hibernated{who}{why}"))
    )


def resume_claim(unit: UnitOfWork, command: ResumeClaim) -> ClaimId:
    """Have it wait for devices; one that does so already, or has them, goes on.

    Raises:
        NotFound: If the caller may not know of it.
        Conflict: If it does not hibernate.
    """
    claim = owned(unit, command.caller, command.claim_id).claim
    who = "" if command.caller.user == claim.owner else f" by {command.caller.user}"
    return ClaimId(once(unit, command.key, lambda: _resume(unit, claim, f"Resumed{who}.")))


def can_hibernate(claim: Claim) -> bool:
    """Whether it could be asked to now: it runs, and no result is on its way back."""
    return claim.phase is Phase.RUNNING and not claim.awaits_results


def refuse_while_returning(claim: Claim) -> None:
    """See that no result of a claim that runs is on its way back.

    Raises:
        Conflict: If one is.
    """
    if claim.awaits_results:
        raise Conflict(
            f"Results of claim {claim.name} are still on their way back.",
            hint="Try again when they are there.",
        )


def begin_hibernating(
    unit: UnitOfWork, claim_id: ClaimId, asked: HibernateAsked, evidence: Evidence | None = None
) -> None:
    """Have its results kept, then its devices given back.

    Its leases are on their way out from now on: whoever waits for them is promised them.
    """
    take(unit, claim_id, asked, evidence)
    # What has not registered yet holds no result.
    leases = list(unit.leases_of(claim_id))
    end_leases(unit, (x for x in leases if x.phase is LeasePhase.GRANTED), asked.reason)
    for lease in leases:
        if lease.phase is LeasePhase.RUNNING:
            unit.put_lease(lease.moved(LeasePhase.RETIRING, asked.reason, unit.now))
    unit.replan = True


def not_kept(unit: UnitOfWork, claim_id: ClaimId, event: NotKept) -> None:
    """Nothing is taken from it after all: its workers are its own again, if it lives on."""
    after = take(unit, claim_id, event)
    if after.phase is not Phase.RUNNING:
        return
    for lease in list(unit.leases_of(claim_id)):
        if lease.phase is LeasePhase.RETIRING:
            is_up = _is_registered(unit, lease)
            phase = LeasePhase.RUNNING if is_up else LeasePhase.GRANTED
            unit.put_lease(lease.moved(phase, event.reason, unit.now))
    if is_asked_gently(unit, claim_id):
        stay(unit, claim_id, event.reason)
    else:
        warn_again(unit, claim_id, event.reason)


def hibernate_too_slow(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """Its results have not found their place in time."""
    record = unit.claims.get(claim_id)
    if record is None or record.claim.phase is not Phase.HIBERNATING:
        return
    within_s = unit.moment.settings.retire_within_s
    reason = f"Its results could not be kept within {format_duration(within_s)}."
    not_kept(unit, claim_id, NotKept(reason=reason))


def _hibernate(unit: UnitOfWork, claim: Claim, reason: str) -> str:
    if claim.phase in _UNDER_WAY:
        stop_moving(unit, claim.id)
        return claim.id
    if claim.phase is Phase.RUNNING:
        refuse_while_returning(claim)
    asked = HibernateAsked(reason=reason)
    if claim.phase is Phase.RESUMING:
        take(unit, claim.id, asked)
    else:
        begin_hibernating(unit, claim.id, asked)
    # Its user's word: it goes nowhere. What it gives back is still for whom that was promised.
    stop_moving(unit, claim.id)
    return claim.id


def _resume(unit: UnitOfWork, claim: Claim, reason: str) -> str:
    if claim.phase not in _RESUMED:
        take(unit, claim.id, ResumeAsked(reason=reason))
    return claim.id


def _is_registered(unit: UnitOfWork, lease: Lease) -> bool:
    report = unit.reports.get(HostId(lease.host_id))
    workers = () if report is None else report.workers
    return any(x.lease_id == lease.id and x.phase is ProcessPhase.RUNNING for x in workers)
