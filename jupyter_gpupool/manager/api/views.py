"""The books as callers are shown them: pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import TypeAdapter

from jupyter_gpupool import __version__
from jupyter_gpupool.manager.auth.caller import Caller, may_see
from jupyter_gpupool.manager.auth.tokens import TokenRecord
from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.forecasts import Start
from jupyter_gpupool.manager.service.records import ClaimRecord
from jupyter_gpupool.manager.service.standing import free_devices
from jupyter_gpupool.pool.claim import HOLDING, WAITING, Phase
from jupyter_gpupool.pool.device import DeviceState, Health
from jupyter_gpupool.pool.event import Event
from jupyter_gpupool.pool.host import Host, HostPhase
from jupyter_gpupool.pool.ids import DeviceUuid, HostId
from jupyter_gpupool.pool.lease import WHOLE_DEVICE, Lease
from jupyter_gpupool.protocol.api import (
    ClaimView,
    DeviceView,
    EventView,
    HolderView,
    HostView,
    LeaseView,
    StatusView,
    TokenView,
    WaitView,
    Workers,
)
from jupyter_gpupool.protocol.estimates import StartView
from jupyter_gpupool.protocol.link import DeviceReport
from jupyter_gpupool.protocol.using import KernelView
from jupyter_gpupool.scheduling.decisions import Waiting

from .evidence_views import evidence_view
from .keeping_views import keeping_view
from .warning_views import warning_view
from .wish_views import wish_in_words

_CLAIMS = TypeAdapter(Sequence[ClaimView])


def claim_view(
    record: ClaimRecord,
    books: Books,
    wait: Waiting | None,
    kernels: tuple[KernelView, ...],
    now: datetime,
    *,
    caller: Caller,
    start: Start | None = None,
) -> ClaimView:
    """A claim, with its leases; `start` is when it is thought to start while it waits."""
    claim, place = record.claim, record.claim.scheduler
    is_kept = claim.kept_until is not None and claim.kept_until > now
    waits = wait is not None and claim.phase in WAITING
    return ClaimView(
        id=claim.id,
        name=claim.name,
        owner=claim.owner,
        phase=claim.phase,
        phase_since=claim.phase_since,
        reason=claim.reason,
        workers=Workers(min=claim.bounds.minimum, max=claim.bounds.maximum),
        gpus_per_worker=_per_worker(record, books),
        gpu_memory=claim.request.devices.memory_bytes or None,
        model=claim.request.model,
        queue=claim.request.queue,
        priority=claim.request.priority,
        created_at=claim.created_at,
        started_at=claim.started_at,
        expires_at=claim.expires_at,
        end=claim.end,
        warning=warning_view(record, books, now, caller),
        own_wish=wish_in_words(record, books, now),
        problem=" ".join(each.text for each in claim.problems),
        kept_until=claim.kept_until if is_kept else None,
        keeping=keeping_view(record, books),
        environment=claim.request.environment,
        kernels=kernels,
        wait=_wait_view(wait, start, now) if wait is not None and waits else None,
        leases=tuple(_lease_view(lease, books) for lease in books.leases_of(claim.id)),
        scheduler_host=_host_name(books, place.host_id) if place is not None else None,
        scheduler_address=place.address if place is not None else None,
        story=claim.story,
        seq=books.seq,
    )


def status_view(caller: Caller, books: Books) -> StatusView:
    """The pool in one look."""
    here = [host for host in books.hosts.values() if host.phase is not HostPhase.LOST]
    devices = [device for host in here for device in host.devices]
    phases = [(r.claim.phase, r.claim.owner) for r in books.claims.values()]
    return StatusView(
        version=__version__,
        user=caller.user,
        role=caller.role,
        hosts=len(here),
        devices=len(devices),
        free=sum(map(len, free_devices(books).values())),
        simulated=bool(devices) and all(device.simulated for device in devices),
        waiting=sum(phase in WAITING for phase, _ in phases),
        running=sum(phase in HOLDING and phase is not Phase.ENDING for phase, _ in phases),
        my_claims=sum(o == caller.user and p is not Phase.ENDED for p, o in phases),
        seq=books.seq,
    )


def host_views(books: Books, contested: Callable[[HostId], str]) -> list[HostView]:
    """All hosts, by name; `contested` says what is wrong with a host's link, or ""."""
    free = free_devices(books)
    return [
        HostView(
            id=host.id,
            name=host.name,
            address=host.address,
            phase=host.phase,
            since=host.since,
            cpus=host.cpus,
            memory_bytes=host.memory_bytes,
            labels=tuple(sorted(host.labels)),
            devices=len(host.devices),
            free=len(free.get(host.id, ())),
            problem=contested(host.id) or host.problem,
        )
        for host in sorted(books.hosts.values(), key=lambda host: (host.name, host.id))
    ]


def device_views(caller: Caller, books: Books) -> list[DeviceView]:
    """All devices, by host and index."""
    free = {d.uuid for devices in free_devices(books).values() for d in devices}
    leases: dict[DeviceUuid, list[Lease]] = {}
    for lease in books.leases.values():
        for uuid in lease.devices:
            leases.setdefault(uuid, []).append(lease)
    hosts = sorted(books.hosts.values(), key=lambda host: (host.name, host.id))
    return [view for host in hosts for view in _devices_of(host, caller, books, leases, free)]


def event_view(event: Event, caller: Caller) -> EventView:
    """An event, as somebody who may see it sees it."""
    seen = replace(event, evidence=evidence_view(event.evidence, caller))
    return EventView.model_validate(seen, from_attributes=True)


def token_view(token: TokenRecord, last_used: Mapping[str, datetime]) -> TokenView:
    """A token, without its secret."""
    return TokenView(
        id=token.id,
        user=token.user,
        role=token.role,
        label=token.label,
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=last_used.get(token.id),
    )


def start_view(start: Start | None, now: datetime) -> StartView:
    """When something is thought to start; nothing starts before now."""
    if start is None:
        return StartView()
    at, by = max(start.at, now), max(start.by, now)
    return StartView(starts_at=at, starts_by=by, starts_learned=start.is_learned)


def _per_worker(record: ClaimRecord, books: Books) -> float:
    """Devices a worker; of a part that is told in bytes, what that came to, and 0 before."""
    devices = record.claim.request.devices
    if not devices.memory_bytes:
        return devices.count or devices.share / WHOLE_DEVICE
    return next((x.share / WHOLE_DEVICE for x in books.leases_of(record.claim.id)), 0)


def _wait_view(wait: Waiting, start: Start | None, now: datetime) -> WaitView:
    known = start_view(None if wait.never else start, now)
    return WaitView(place=wait.place, reason=wait.reason, never=wait.never, **dict(known))


def _lease_view(lease: Lease, books: Books) -> LeaseView:
    host = books.hosts.get(lease.host_id)
    devices = host.devices if host is not None else ()
    model = next((d.model for d in devices if d.uuid == lease.device), "")
    return LeaseView(
        id=lease.id,
        phase=lease.phase,
        host=_host_name(books, lease.host_id),
        host_id=lease.host_id,
        device=lease.device,
        devices=lease.devices,
        share=lease.share / WHOLE_DEVICE,
        model=model,
        granted_at=lease.granted_at,
        reason=lease.reason,
        restarts=lease.restarts,
    )


def _host_name(books: Books, host_id: HostId) -> str:
    host = books.hosts.get(host_id)
    return host_id if host is None else host.name


def _devices_of(
    host: Host,
    caller: Caller,
    books: Books,
    leases: Mapping[DeviceUuid, Sequence[Lease]],
    free: set[DeviceUuid],
) -> Iterable[DeviceView]:
    report = books.reports.get(host.id)
    entries = {e.device.uuid: e for e in report.devices} if report is not None else {}
    for device in sorted(host.devices, key=lambda device: device.index):
        entry = entries.get(device.uuid) or DeviceReport(device=device, state=DeviceState())
        holders = tuple(_holder(x, caller, books) for x in leases.get(device.uuid, ()))
        lost = host.phase is HostPhase.LOST
        yield _device_view(entry, host, holders).model_copy(
            update={"free": device.uuid in free} | ({"health": Health.LOST} if lost else {})
        )


def _holder(lease: Lease, caller: Caller, books: Books) -> HolderView:
    record, share = books.claims.get(lease.claim_id), lease.share / WHOLE_DEVICE
    if record is None or not may_see(caller, record.claim.owner):
        return HolderView(share=share)
    return HolderView(claim=record.claim.id, owner=record.claim.owner, share=share)


def _device_view(entry: DeviceReport, host: Host, holders: tuple[HolderView, ...]) -> DeviceView:
    state, sample = entry.state, entry.sample
    seen = next((holder for holder in holders if holder.claim is not None), None)
    held = round(sum(holder.share for holder in holders) * WHOLE_DEVICE)
    return DeviceView(
        uuid=entry.device.uuid,
        host=host.name,
        host_id=host.id,
        device=entry.device,
        health=state.health,
        problem=state.problem,
        free=False,
        leased=bool(holders),
        claim=seen.claim if seen is not None else None,
        owner=seen.owner if seen is not None else None,
        holders=holders,
        left=max(0, WHOLE_DEVICE - held) / WHOLE_DEVICE,
        held_elsewhere=state.held_elsewhere,
        foreign=state.foreign,
        utilisation=sample.utilisation if sample is not None else None,
        memory_used_bytes=sample.memory_used_bytes if sample is not None else None,
    )
