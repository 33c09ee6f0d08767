"""The books as one scheduling pass sees them.

Called by `planning.py`. Says which devices are free: connected, healthy, in nobody's lease, and
with no worker of any claim, wanted or not, still on them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from jupyter_gpupool.pool.claim import WAITING, Claim, Phase
from jupyter_gpupool.pool.device import Device, DeviceState, Health
from jupyter_gpupool.pool.host import DURABLE, Host, HostPhase
from jupyter_gpupool.pool.ids import DeviceUuid, HostId
from jupyter_gpupool.scheduling.snapshot import (
    FreeDevice,
    HostView,
    Obstacle,
    Snapshot,
    Terms,
    Want,
)

from .books import Books
from .environments import Barred, Barring
from .records import ClaimRecord
from .unit import UnitOfWork

MOST_FAILURES = 3
FAILURE_WINDOW_S = 300.0

View = Books | UnitOfWork


def free_devices(view: View) -> dict[HostId, tuple[Device, ...]]:
    """Every device that may be leased now, each once, by connected host."""
    taken = {lease.device for lease in view.leases.values()}
    free: dict[HostId, tuple[Device, ...]] = {}
    for host in sorted(view.hosts.values(), key=lambda host: host.id):
        if host.phase is HostPhase.CONNECTED:
            free[host.id] = tuple(d for d in _offered(view, host) if d.uuid not in taken)
            # Should two hosts ever name the same device, only one of them may have it.
            taken |= {device.uuid for device in free[host.id]}
    return free


def standing_of(
    view: View, host_id: HostId
) -> tuple[tuple[Device, ...], Mapping[DeviceUuid, Obstacle]]:
    """What is free on a host and what keeps the rest: a pass decides and tells by nothing else.

    Looks at this host alone, for every report asks.
    """
    host = view.hosts.get(host_id)
    if host is None:
        return (), {}
    leased = {lease.device for lease in view.leases_on(host_id)}
    is_there = host.phase is HostPhase.CONNECTED
    offered = _offered(view, host) if is_there else ()
    free = tuple(device for device in offered if device.uuid not in leased)
    return free, _obstacles(view, host, free)


def could_any_start(view: View, records: Iterable[ClaimRecord]) -> bool:
    """Whether one of these waiting claims could start on what is free, if it were alone."""
    free = [(i, _free(device)) for i, found in free_devices(view).items() for device in found]
    if not free:
        return False
    barring = Barring(view)
    return any(_could_start(record, barring, free) for record in records)


def _could_start(
    record: ClaimRecord, barring: Barring, free: Iterable[tuple[HostId, FreeDevice]]
) -> bool:
    terms, least = terms_of(record, barring.of(record)), _least(record.claim)
    fitting = (True for host_id, device in free if terms.accept(host_id, device))
    return len(list(islice(fitting, least))) == least


def build(view: View, monotonic_s: float) -> Snapshot:
    """Everything a pass needs."""
    return Snapshot(hosts=tuple(seen_hosts(view)), wants=tuple(_wants(view, monotonic_s)))


def terms_of(record: ClaimRecord, barred: Barred) -> Terms:
    """What a device must be for a claim."""
    request = record.claim.request
    return Terms(request.model.lower(), request.memory_bytes, record.avoid, barred.hosts)


def failures_in_window(view: View, record: ClaimRecord, monotonic_s: float) -> int:
    """How many workers of a claim were given up lately."""
    times = view.failures.get(record.claim.id) or ()
    return sum(monotonic_s - time < FAILURE_WINDOW_S for time in times)


def _can_start(view: View, host_id: HostId) -> bool:
    report = view.reports.get(host_id)
    return report is None or report.can_start


def _offered(view: View, host: Host) -> Iterator[Device]:
    report = view.reports.get(host.id)
    if not _can_start(view, host.id):
        return iter(())
    busy = {worker.device for worker in report.workers} if report is not None else set()
    states = dict(host.states)
    return (
        device
        for device in host.devices
        if device.uuid in states and states[device.uuid].may_be_leased and device.uuid not in busy
    )


def seen_hosts(view: View) -> Iterator[HostView]:
    """The connected hosts, with what is free on them and what keeps the rest."""
    places = (record.claim.scheduler for record in view.placed())
    schedulers = Counter(place.host_id for place in places if place is not None)
    for host_id, free in free_devices(view).items():
        host = view.hosts[host_id]
        yield HostView(
            id=host_id,
            durable=DURABLE in host.labels,
            schedulers=schedulers[host_id],
            free=tuple(map(_free, free)),
            capacity=tuple(map(_free, _not_lost(host))),
            can_start=_can_start(view, host_id),
            obstacles=_obstacles(view, host, free),
        )


def _obstacles(view: View, host: Host, free: Sequence[Device]) -> dict[DeviceUuid, Obstacle]:
    leased = {lease.device for lease in view.leases_on(host.id)}
    states, is_free = dict(host.states), {device.uuid for device in free}
    of_host = None if _can_start(view, host.id) else Obstacle.HOST
    return {
        device.uuid: Obstacle.LEASED
        if device.uuid in leased
        else of_host or _obstacle(states.get(device.uuid, DeviceState()))
        for device in host.devices
        if device.uuid not in is_free
    }


def _obstacle(state: DeviceState) -> Obstacle:
    if state.held_elsewhere:
        return Obstacle.ELSEWHERE
    if state.health is not Health.HEALTHY:
        return Obstacle.QUARANTINED
    if any(not process.graphics_only for process in state.foreign):
        return Obstacle.FOREIGN
    return Obstacle.FREEING


def _not_lost(host: Host) -> Iterator[Device]:
    lost = {uuid for uuid, state in host.states if state.health is Health.LOST}
    return (device for device in host.devices if device.uuid not in lost)


def _free(device: Device) -> FreeDevice:
    return FreeDevice(uuid=device.uuid, model=device.model, memory_bytes=device.memory_bytes)


def _wants(view: View, monotonic_s: float) -> Iterator[Want]:
    barring = Barring(view)
    for record in view.claims.values():
        claim = record.claim
        if claim.phase in WAITING:
            yield _want(record, barring.of(record), _least(claim), max(1, claim.bounds.maximum))
        elif claim.phase in (Phase.STARTING, Phase.RUNNING) and _may_grow(
            view, record, monotonic_s
        ):
            lacking = claim.bounds.maximum - sum(x.counts for x in view.leases_of(claim.id))
            if lacking > 0:
                yield _want(record, barring.of(record), 0, lacking)


def _least(claim: Claim) -> int:
    # It may shrink to nothing, but it starts with at least one worker.
    return max(1, claim.bounds.minimum)


def _may_grow(view: View, record: ClaimRecord, monotonic_s: float) -> bool:
    place = record.claim.scheduler
    host = view.hosts.get(place.host_id) if place is not None else None
    if host is None or host.phase is not HostPhase.CONNECTED:
        return False
    return failures_in_window(view, record, monotonic_s) < MOST_FAILURES


def _want(record: ClaimRecord, barred: Barred, minimum: int, maximum: int) -> Want:
    claim, terms = record.claim, terms_of(record, barred)
    return Want(
        claim_id=claim.id,
        owner=claim.owner,
        since=claim.wanted_since,
        minimum=minimum,
        maximum=maximum,
        model=terms.model,
        gpu_memory_bytes=terms.gpu_memory_bytes,
        scheduler_host=claim.scheduler.host_id if claim.scheduler is not None else None,
        avoid=terms.avoid,
        barred=terms.barred,
        barred_why=barred.why,
    )
