"""What a host's report means for the leases on it and for the claims they belong to: pure.

Called by `hosts.py` for every report. Two steps, because a claim's event depends on its leases as
they are after the report: `lease_changes`, then `claim_events` for each claim concerned.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jupyter_gpupool.pool.claim import Phase, SchedulerPlace
from jupyter_gpupool.pool.claim_events import (
    ClaimEvent,
    EndAsked,
    EndKind,
    MinimumUp,
    SchedulerUp,
    StartFailed,
    WorkersChanged,
)
from jupyter_gpupool.pool.ids import LeaseId
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.pool.units import plural
from jupyter_gpupool.protocol.link import HostReport, ProcessPhase, SchedulerReport, WorkerReport

from .outbox import Outbox
from .records import ClaimRecord

_MOST_REASON = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseChange:
    """A lease that a report moves.

    Attributes:
        phase: Where it goes; ENDED is the agent's word that the device is free.
        failed: Its worker was given up by the agent.
        lingers: Its worker has to go and does not; the reason says why.
    """

    lease_id: LeaseId
    phase: LeasePhase
    reason: str
    restarts: int = 0
    failed: bool = False
    lingers: bool = False


_FOLLOWS = {
    ProcessPhase.STARTING: LeasePhase.GRANTED,
    ProcessPhase.RUNNING: LeasePhase.RUNNING,
    ProcessPhase.RESTARTING: LeasePhase.GRANTED,
    ProcessPhase.RETIRING: LeasePhase.RETIRING,
    ProcessPhase.RETIRED: LeasePhase.ENDING,
    ProcessPhase.FAILED: LeasePhase.ENDING,
}
_HAVE_SCHEDULERS = (
    Phase.STARTING,
    Phase.RUNNING,
    Phase.HIBERNATING,
    Phase.HIBERNATED,
    Phase.RESUMING,
)
_UP = (ProcessPhase.STARTING, ProcessPhase.RUNNING, ProcessPhase.RESTARTING)
_SAYS = {
    ProcessPhase.STARTING: "Its worker is starting.",
    ProcessPhase.RUNNING: "Its worker is registered.",
    ProcessPhase.RESTARTING: "Its worker ended and is being started again.",
    ProcessPhase.RETIRING: "Its worker hands over its results.",
    ProcessPhase.RETIRED: "Its worker was retired.",
    ProcessPhase.FAILED: "Its worker could not be kept running.",
}


def lease_changes(
    report: HostReport, leases: Iterable[Lease], outbox: Outbox
) -> Iterator[LeaseChange]:
    """How the leases of this host move."""
    workers = {worker.lease_id: worker for worker in report.workers}
    for lease in leases:
        worker = workers.get(lease.id)
        if lease.phase is LeasePhase.ENDING:
            if worker is None and outbox.is_dropped(lease.id, report.generation):
                yield _moved(lease, LeasePhase.ENDED, lease.reason)
            elif worker is not None and worker.phase is ProcessPhase.STOPPING:
                yield from _lingering(lease, worker)
        elif worker is not None and worker.phase in _FOLLOWS:
            yield from _followed(lease, worker)


def retirements(scheduler: SchedulerReport, leases: Iterable[Lease]) -> Iterator[LeaseChange]:
    """How a claim's leases move, on whatever host, because of what its scheduler says of them."""
    for lease in leases:
        if lease.id in scheduler.retired and lease.phase is not LeasePhase.ENDING:
            yield _moved(lease, LeasePhase.ENDING, _SAYS[ProcessPhase.RETIRED])
        elif lease.id in scheduler.retiring and lease.counts:
            yield _moved(lease, LeasePhase.RETIRING, _SAYS[ProcessPhase.RETIRING])


def claim_events(
    record: ClaimRecord,
    leases: Sequence[Lease],
    changes: Sequence[LeaseChange],
    scheduler: SchedulerReport | None,
) -> Iterator[ClaimEvent]:
    """What happened to one claim. `scheduler` is None unless the report comes from its host."""
    place = record.claim.scheduler
    if place is None or record.claim.phase not in _HAVE_SCHEDULERS:
        return
    current = scheduler if scheduler is not None and scheduler.start == record.start else None
    lost = _scheduler_lost(record, place, current)
    if lost is not None:
        yield lost
        return
    came_up = _scheduler_up(place, current)
    if came_up is not None and record.claim.phase in (Phase.STARTING, Phase.RUNNING):
        yield came_up
    if record.claim.phase is Phase.STARTING:
        yield from _while_starting(record, leases, changes, came_up is not None)
    elif record.claim.phase is Phase.RUNNING:
        yield from _while_running(leases, changes)


def _moved(
    lease: Lease, phase: LeasePhase, reason: str, worker: WorkerReport | None = None
) -> LeaseChange:
    return LeaseChange(
        lease_id=lease.id,
        phase=phase,
        reason=reason[-_MOST_REASON:],
        restarts=worker.restarts if worker is not None else lease.restarts,
        failed=worker is not None and worker.phase is ProcessPhase.FAILED,
    )


def _followed(lease: Lease, worker: WorkerReport) -> Iterator[LeaseChange]:
    phase = _FOLLOWS[worker.phase]
    if phase is lease.phase and worker.restarts == lease.restarts:
        return
    if lease.phase is LeasePhase.RETIRING and worker.phase in _UP:
        return  # its scheduler knows better, and nobody comes back from retiring
    yield _moved(lease, phase, worker.problem or _SAYS[worker.phase], worker)


def _lingering(lease: Lease, worker: WorkerReport) -> Iterator[LeaseChange]:
    problem = worker.problem[-_MOST_REASON:]
    if problem and problem != lease.reason:
        yield replace(_moved(lease, LeasePhase.ENDING, problem), lingers=True)


def _scheduler_lost(
    record: ClaimRecord, place: SchedulerPlace, report: SchedulerReport | None
) -> ClaimEvent | None:
    if report is None:
        return None
    if report.phase is ProcessPhase.FAILED:
        return _lost(record, report.problem or "it ended without a word")
    if place.address is not None and report.address not in (None, place.address):
        # Another process cannot know what the first one knew.
        return _lost(record, "another one took its place")
    return None


def _lost(record: ClaimRecord, why: str) -> ClaimEvent:
    tail = why[-_MOST_REASON:]
    if record.claim.phase is Phase.STARTING and record.claim.hibernation is None:
        return StartFailed(reason=f"Its scheduler did not start: {tail}")
    return EndAsked(kind=EndKind.FAILED, reason=f"Scheduler lost: {tail}")


def _scheduler_up(place: SchedulerPlace, report: SchedulerReport | None) -> SchedulerUp | None:
    if report is None or report.phase is not ProcessPhase.RUNNING or report.address is None:
        return None
    if (report.address, report.dashboard_port) == (place.address, place.dashboard_port):
        return None
    return SchedulerUp(
        reason="Its scheduler listens.",
        address=report.address,
        dashboard_port=report.dashboard_port,
    )


def _while_starting(
    record: ClaimRecord,
    leases: Sequence[Lease],
    changes: Sequence[LeaseChange],
    scheduler_came_up: bool,  # noqa: FBT001 - private, and named at its only call
) -> Iterator[ClaimEvent]:
    place, least = record.claim.scheduler, max(1, record.claim.bounds.minimum)
    counting = sum(lease.counts for lease in leases)
    running = sum(lease.phase is LeasePhase.RUNNING for lease in leases)
    failed = [change for change in changes if change.failed]
    if failed and counting < least:
        yield StartFailed(reason=f"A worker did not start: {failed[0].reason}")
    elif (
        place is not None
        and (place.address is not None or scheduler_came_up)
        and running >= min(least, max(1, counting))
    ):
        yield MinimumUp(reason=f"{plural(running, 'worker')} registered.")


def _while_running(leases: Sequence[Lease], changes: Sequence[LeaseChange]) -> Iterator[ClaimEvent]:
    told = list(_sentences(changes))
    if told:
        running = sum(lease.phase is LeasePhase.RUNNING for lease in leases)
        told.append(f"{plural(running, 'worker')} now.")
        yield WorkersChanged(reason=" ".join(told)[:_MOST_REASON])


def _sentences(changes: Sequence[LeaseChange]) -> Iterator[str]:
    joined = sum(change.phase is LeasePhase.RUNNING for change in changes)
    if joined:
        yield f"{plural(joined, 'worker')} joined."
    for change in changes:
        if change.lingers:
            yield f"A worker that has to go is still there: {change.reason}"
        elif change.failed:
            yield f"A worker is lost: {change.reason}"
        elif change.phase is LeasePhase.ENDING:
            yield "A worker was retired."
        elif change.phase is LeasePhase.GRANTED:
            yield f"A worker is started again: {change.reason}"
