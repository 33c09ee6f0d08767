"""What hosts do to the books, one function a command: join, report, fall silent, be lost.

Called by the link with every report, and by the timers.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.claim_events import (
    ClaimEvent,
    EndAsked,
    EndKind,
    NotKept,
    StartFailed,
    WorkersChanged,
)
from jupyter_gpupool.pool.device import DeviceState, Health
from jupyter_gpupool.pool.errors import NotAllowed
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.host import Host, HostPhase
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.units import plural
from jupyter_gpupool.protocol.keeping import Keeping
from jupyter_gpupool.protocol.link import HostReport, SchedulerReport, WorkerReport

from .arrows import fail_start, settle, take
from .books import Books
from .digest import LeaseChange, claim_events, lease_changes, retirements
from .giving_up import FAILURE_WINDOW_S
from .hibernating import not_kept
from .idle_watching import watch_host
from .kept_results import Room, keeping_events
from .kept_room import no_room, waits_for_room
from .moving import go_on
from .process_problems import problems_changed
from .records import ClaimRecord, HostToken
from .standing import standing_of
from .telling import is_own_word, with_one_more
from .unit import UnitOfWork
from .using import kernels_gone


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSaid:
    """A host's report.

    Attributes:
        joins: It is the first one on a connection.
        token_id: The token of that connection.
    """

    report: HostReport
    joins: bool = False
    token_id: str = ""


def host_said(unit: UnitOfWork, command: HostSaid) -> None:
    """Take a report into the books, with all it means for leases and claims.

    Raises:
        NotAllowed: If the host joined with another token that still counts.
    """
    report = command.report
    if command.joins:
        _bind(unit, report.host_id, command.token_id)
    before = unit.hosts.get(report.host_id)
    is_connected = before is not None and before.phase is HostPhase.CONNECTED
    if not command.joins and not is_connected:
        return  # a late word of a connection that is gone
    standing_before = standing_of(unit, report.host_id)
    offers_before = _offers(unit.reports.get(report.host_id))
    unit.reports[report.host_id] = report
    unit.moment.idle.sightings.hear(report, unit.moment.monotonic_s, unit.claims)
    _keep_host(unit, before, report, joins=command.joins)
    worse = _tell_of_devices(unit, before, report)
    changes = _move_leases(unit, report)
    _move_claims(unit, report, changes)
    _tell_owners(unit, report, worse)
    _miss_kernels(unit, report)
    watch_host(unit, report.host_id)
    stands_as_before = standing_of(unit, report.host_id) == standing_before
    if not stands_as_before or _offers(report) != offers_before:
        unit.replan = True


def check_token(view: Books | UnitOfWork, host_id: HostId, token_id: str) -> None:
    """See that nobody takes over a host whose own token still counts.

    Raises:
        NotAllowed: If this is another token than the one the host joined with.
    """
    bound = view.host_tokens.get(host_id)
    if bound is not None and bound.token_id != token_id and bound.token_id in view.tokens:
        raise NotAllowed(
            f"Host {host_id} joined with another token, {bound.token_id}, which still counts.",
            hint="Use that token, or have an admin revoke it first.",
        )


def host_silent(unit: UnitOfWork, host_id: HostId) -> None:
    """Its agent's link is down; what runs there is assumed to run on."""
    host = unit.hosts.get(host_id)
    if host is not None and host.phase is HostPhase.CONNECTED:
        unit.hosts[host_id] = replace(host, phase=HostPhase.SILENT, since=unit.now)
        reason = f"Host {host.name} does not answer; what runs there is assumed to run on."
        unit.record(EventKind.HOST_SILENT, reason, host_id=host_id)
        unit.replan = True


def host_lost(unit: UnitOfWork, host_id: HostId) -> None:
    """It was silent for too long: its leases are given up, and claims go on without it."""
    host = unit.hosts.get(host_id)
    if host is None or host.phase is not HostPhase.SILENT:
        return
    unit.hosts[host_id] = replace(host, phase=HostPhase.LOST, since=unit.now)
    del unit.reports[host_id]
    reason = f"Host {host.name} is lost: it did not answer for too long."
    unit.record(EventKind.HOST_LOST, reason, host_id=host_id)
    lost = list(unit.leases_on(host_id))
    for lease in lost:
        unit.put_lease(lease.moved(LeasePhase.ENDED, reason, unit.now))
    ids = {lease.claim_id for lease in lost}
    ids |= {r.claim.id for r in unit.placed() if _is_placed_on(r.claim, host_id)}
    ids |= _ending_with_traces(unit)
    for claim_id in sorted(ids):
        _lose(unit, unit.claims[claim_id].claim, host_id, reason)
        settle(unit, claim_id)
    unit.replan = True


def _offers(report: HostReport | None) -> tuple[object, ...]:
    """What may let a claim run that could not, or the other way round."""
    if report is None:
        return ()
    told = ((each.name, each.versions, each.problem) for each in report.environment_reports)
    return (report.environments, report.kernel_environments, *told)


def _bind(unit: UnitOfWork, host_id: HostId, token_id: str) -> None:
    check_token(unit, host_id, token_id)
    bound = HostToken(host_id=host_id, token_id=token_id)
    if unit.host_tokens.get(host_id) != bound:
        unit.host_tokens[host_id] = bound


def _keep_host(unit: UnitOfWork, before: Host | None, report: HostReport, *, joins: bool) -> None:
    same = before is not None and before.phase is HostPhase.CONNECTED
    after = Host(
        id=report.host_id,
        name=report.name,
        address=report.address,
        phase=HostPhase.CONNECTED,
        since=before.since if before is not None and same else unit.now,
        cpus=report.cpus,
        memory_bytes=report.memory_bytes,
        labels=frozenset(report.labels),
        devices=tuple(entry.device for entry in report.devices),
        states=tuple((entry.device.uuid, entry.state) for entry in report.devices),
        problem=report.problem,
    )
    if after != before:
        unit.hosts[report.host_id] = after
    if joins and not same:
        joined = f"Host {report.name} joined with {plural(len(report.devices), 'device')}."
        unit.record(EventKind.HOST_JOINED, joined, host_id=report.host_id)
        unit.replan = True


def _tell_of_devices(
    unit: UnitOfWork, before: Host | None, report: HostReport
) -> dict[DeviceUuid, str]:
    known = dict(before.states) if before is not None else {}
    worse: dict[DeviceUuid, str] = {}
    for entry in report.devices:
        uuid, state = entry.device.uuid, entry.state
        was = known.get(uuid, DeviceState())
        if was.health is state.health:
            continue
        if state.health is Health.HEALTHY:
            reason, kind = "Its problem is gone.", EventKind.DEVICE_CLEARED
        else:
            reason, kind = state.problem or "It is not well.", EventKind.DEVICE_QUARANTINED
        text = f"Device {uuid} of {report.name}: {reason}"
        unit.record(kind, text, host_id=report.host_id, device=uuid)
        if state.health is not Health.HEALTHY:
            worse[uuid] = text
    return worse


def _tell_owners(unit: UnitOfWork, report: HostReport, worse: dict[DeviceUuid, str]) -> None:
    # Told alone: NVML may fail for a moment, and a worker that is well loses nothing by that.
    for lease in list(unit.leases_on(report.host_id)):
        text = " ".join(worse[uuid] for uuid in lease.devices if uuid in worse)
        if text and unit.claims[lease.claim_id].claim.phase is Phase.RUNNING:
            take(unit, lease.claim_id, WorkersChanged(reason=text))


def _miss_kernels(unit: UnitOfWork, report: HostReport) -> None:
    """Believe a host which kernels have ended on it, if they are the ones that are meant."""
    for claim_id in {each.claim_id for each in report.gone_kernels}:
        record = unit.claims.get(claim_id)
        kernels = () if record is None else record.claim.kernels
        told = {(e.kernel_id, e.pid, e.started) for e in report.gone_kernels}
        ids = {k.id for k in kernels if (k.id, k.pid, k.started) in told}
        kernels_gone(unit, claim_id, ids)


def _move_leases(unit: UnitOfWork, report: HostReport) -> dict[ClaimId, list[LeaseChange]]:
    outbox = unit.moment.outboxes.of(report.host_id)
    changes: dict[ClaimId, list[LeaseChange]] = defaultdict(list)
    for change in list(lease_changes(report, unit.leases_on(report.host_id), outbox)):
        _move_lease(unit, change, changes)
    for scheduler in report.schedulers:
        record = unit.claims.get(scheduler.claim_id)
        is_current = record is not None and record.start == scheduler.start
        if record is not None and is_current and _is_placed_on(record.claim, report.host_id):
            for change in list(retirements(scheduler, unit.leases_of(scheduler.claim_id))):
                _move_lease(unit, change, changes)
    return changes


def _move_lease(
    unit: UnitOfWork, change: LeaseChange, changes: dict[ClaimId, list[LeaseChange]]
) -> None:
    lease = unit.leases[change.lease_id]
    moved = lease.moved(change.phase, change.reason, unit.now)
    unit.put_lease(replace(moved, restarts=change.restarts))
    changes[lease.claim_id].append(change)
    unit.replan = unit.replan or not moved.counts
    if change.failed:
        _count_failure(unit, lease.claim_id)


def _count_failure(unit: UnitOfWork, claim_id: ClaimId) -> None:
    now = unit.moment.monotonic_s
    recent = [t for t in unit.failures.get(claim_id) or () if now - t < FAILURE_WINDOW_S]
    unit.failures[claim_id] = (*recent, now)


def _move_claims(
    unit: UnitOfWork, report: HostReport, changes: dict[ClaimId, list[LeaseChange]]
) -> None:
    schedulers = {}
    for scheduler in report.schedulers:
        record = unit.claims.get(scheduler.claim_id)
        if record is not None and scheduler.start == record.start:
            schedulers[scheduler.claim_id] = scheduler
    here = {r.claim.id for r in unit.placed() if _is_placed_on(r.claim, report.host_id)}
    for claim_id in sorted(here | changes.keys() | _ending_with_traces(unit)):
        record = unit.claims[claim_id]
        told = schedulers.get(claim_id) if claim_id in here else None
        leases = list(unit.leases_of(claim_id))
        events = list(claim_events(record, leases, changes.get(claim_id, []), told))
        for event in _to_be_told(unit, claim_id, events):
            if isinstance(event, StartFailed):
                fail_start(unit, claim_id, event.reason, [report.host_id])
            else:
                take(unit, claim_id, event)
        if told is not None:
            _keep_results(unit, report, told)
        settle(unit, claim_id)
    _tell_problems(unit, report, {i: s for i, s in schedulers.items() if i in here})


def _keep_results(unit: UnitOfWork, report: HostReport, told: SchedulerReport) -> None:
    claim, terms = unit.claims[told.claim_id].claim, unit.policy.policy.hibernation
    holders = (x for x in report.holders if (x.claim_id, x.start) == (told.claim_id, told.start))
    holder = next(holders, None)
    room = _room(unit, unit.claims[told.claim_id], told.keeping)
    events = list(keeping_events(claim, told.keeping, holder, terms, room=room))
    for event in _to_be_told(unit, claim.id, events):
        if isinstance(event, NotKept):
            not_kept(unit, claim.id, event)
        else:
            claim = take(unit, claim.id, event)
    go_on(unit, claim.id)


def _room(unit: UnitOfWork, record: ClaimRecord, keeping: Keeping | None) -> Room | None:
    """Whether its results have room, if it may not be kept before that is known."""
    if keeping is None or not waits_for_room(record.claim, unit.policy.policy.hibernation):
        return None
    return Room(no_room(unit, record, keeping.result_bytes))


def _tell_problems(
    unit: UnitOfWork, report: HostReport, schedulers: dict[ClaimId, SchedulerReport]
) -> None:
    workers: dict[ClaimId, list[WorkerReport]] = defaultdict(list)
    for worker in report.workers:
        workers[worker.claim_id].append(worker)
    for claim_id in sorted(schedulers.keys() | workers.keys()):
        record = unit.claims.get(claim_id)
        if record is None or record.claim.phase is not Phase.RUNNING:
            continue
        changed = problems_changed(
            record.claim, unit.leases_of(claim_id), schedulers.get(claim_id), workers[claim_id]
        )
        if changed is not None:
            for event in _to_be_told(unit, claim_id, [changed]):
                take(unit, claim_id, event)


def _to_be_told(
    unit: UnitOfWork, claim_id: ClaimId, events: Sequence[ClaimEvent]
) -> Sequence[ClaimEvent]:
    """All of them, or none if it is a user's process that talks too much."""
    if not is_own_word(events):
        return events
    told_s = with_one_more(unit.told.get(claim_id) or (), unit.moment.monotonic_s)
    if told_s is None:
        return ()
    unit.told[claim_id] = told_s
    return events


def _ending_with_traces(unit: UnitOfWork) -> set[ClaimId]:
    return {r.claim.id for r in unit.placed() if r.claim.phase is Phase.ENDING}


def _is_placed_on(claim: Claim, host_id: HostId) -> bool:
    return claim.scheduler is not None and claim.scheduler.host_id == host_id


def _lose(unit: UnitOfWork, claim: Claim, host_id: HostId, reason: str) -> None:
    with_scheduler = _is_placed_on(claim, host_id)
    lives_by_it = claim.phase is Phase.RUNNING or claim.hibernation is not None
    if lives_by_it and with_scheduler and not claim.is_over:
        take(unit, claim.id, EndAsked(kind=EndKind.FAILED, reason=f"Scheduler lost: {reason}"))
    elif claim.phase is Phase.RUNNING:
        take(unit, claim.id, WorkersChanged(reason=reason))
    elif claim.phase is Phase.STARTING and (with_scheduler or _is_short(unit, claim)):
        take(unit, claim.id, StartFailed(reason=reason))


def _is_short(unit: UnitOfWork, claim: Claim) -> bool:
    counting = sum(lease.counts for lease in unit.leases_of(claim.id))
    return counting < max(1, claim.bounds.minimum)
