"""Taking a claim along an arrow of its state machine, with everything that follows from it.

Called by every command that changes a claim; nothing else calls `pool.claim_machine.step`.
"""

from collections.abc import Iterable
from dataclasses import replace

from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.claim_events import AllFreed, ClaimEvent, StartFailed
from jupyter_gpupool.pool.claim_machine import step
from jupyter_gpupool.pool.claim_step import Effect
from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.pool.lease import Lease, LeasePhase

from .recording import close_record
from .unit import UnitOfWork

_NOWHERE: frozenset[HostId] = frozenset()


def take(
    unit: UnitOfWork, claim_id: ClaimId, event: ClaimEvent, evidence: Evidence | None = None
) -> Claim:
    """Take one arrow and do what it asks for; `evidence` is kept with what people are told.

    Raises:
        ImpossibleTransition: If the claim's phase has no such arrow.
    """
    record = unit.claims[claim_id]
    taken = step(record.claim, event, unit.now)
    runs = taken.claim.phase is Phase.RUNNING
    unit.put_claim(replace(record, claim=taken.claim, avoid=_NOWHERE if runs else record.avoid))
    if not runs:
        _forget_watch(unit, claim_id)
    owner = taken.claim.owner
    unit.record(taken.kind, taken.reason, owner=owner, claim_id=claim_id, evidence=evidence)
    if Effect.END_LEASES in taken.effects:
        end_leases(unit, unit.leases_of(claim_id), taken.reason)
    # Where it failed before it may grow once it runs, for it no longer avoids those hosts.
    forgives = runs and bool(record.avoid)
    unit.replan = unit.replan or forgives or Effect.REPLAN in taken.effects
    return taken.claim


def fail_start(unit: UnitOfWork, claim_id: ClaimId, reason: str, hosts: Iterable[HostId]) -> None:
    """A start came to nothing, because of these hosts as far as can be seen."""
    record = unit.claims[claim_id]
    unit.put_claim(replace(record, avoid=record.avoid | frozenset(hosts)))
    take(unit, claim_id, StartFailed(reason=reason))


def end_leases(unit: UnitOfWork, leases: Iterable[Lease], reason: str) -> None:
    """The workers of these leases have to go now."""
    for lease in leases:
        if lease.phase is not LeasePhase.ENDING:
            unit.put_lease(lease.moved(LeasePhase.ENDING, reason, unit.now))


def settle(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """End a claim that is ending, if nothing of it is left anywhere."""
    claim = unit.claims[claim_id].claim
    if claim.phase is Phase.ENDING and _nothing_left(unit, claim):
        ended = take(unit, claim_id, AllFreed(reason="Nothing of it runs any more."))
        # Its keys and variables are of no use any more, so they must not outlive it.
        without = replace(ended, request=replace(ended.request, env={}), kernels=())
        unit.put_claim(replace(unit.claims[claim_id], claim=without, secrets=None))


def _forget_watch(unit: UnitOfWork, claim_id: ClaimId) -> None:
    """How it was used counts no more once it gives its devices back."""
    close_record(unit, claim_id)
    for watches in (unit.watches, unit.kept_watches):
        if claim_id in watches:
            del watches[claim_id]


def _nothing_left(unit: UnitOfWork, claim: Claim) -> bool:
    if any(unit.leases_of(claim.id)) or _is_reported(unit, claim.id):
        return False
    return claim.scheduler is None or _scheduler_is_gone(unit, claim.id, claim.scheduler.host_id)


def _is_reported(unit: UnitOfWork, claim_id: ClaimId) -> bool:
    return any(
        any(scheduler.claim_id == claim_id for scheduler in report.schedulers)
        or any(holder.claim_id == claim_id for holder in report.holders)
        or any(worker.claim_id == claim_id for worker in report.workers)
        for report in unit.reports.values()
    )


def _scheduler_is_gone(unit: UnitOfWork, claim_id: ClaimId, host_id: HostId) -> bool:
    host, report = unit.hosts.get(host_id), unit.reports.get(host_id)
    if host is None or host.phase is HostPhase.LOST:
        return True
    outbox = unit.moment.outboxes.of(host_id)
    return report is not None and outbox.is_dropped(claim_id, report.generation)
