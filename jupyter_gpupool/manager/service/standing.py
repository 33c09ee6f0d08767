"""What keeps the devices of a host from being leased, one by one: pure.

Called by whoever builds a pass's view, shows devices, or asks whether a report changes anything. A
lease that stays is no obstacle here: the pass knows it from its claim.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jupyter_gpupool.pool.device import Device, DeviceState, Health
from jupyter_gpupool.pool.host import Host, HostPhase
from jupyter_gpupool.pool.ids import DeviceUuid, HostId, LeaseId
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.scheduling.shape import Obstacle

from .books import Books
from .unit import UnitOfWork

View = Books | UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a device stands.

    Attributes:
        left: Thousandths of it that no lease holds, whatever becomes of those.
        obstacle: What keeps it from another lease, apart from those that stay.
    """

    device: Device
    left: int
    obstacle: Obstacle | None

    @property
    def leased(self) -> bool:
        """Whether any lease holds it or a part of it."""
        return self.left < WHOLE_DEVICE

    @property
    def is_free(self) -> bool:
        """Whether all of it may be leased now."""
        return not self.leased and self.obstacle is None

    @property
    def has_room(self) -> bool:
        """Whether a part of it, at least, may be leased now."""
        return self.left > 0 and self.obstacle is None


def free_devices(view: View) -> dict[HostId, tuple[Device, ...]]:
    """Every device that may be leased whole now, each once, by connected host."""
    free: dict[HostId, tuple[Device, ...]] = {}
    taken: set[DeviceUuid] = {uuid for lease in view.leases.values() for uuid in lease.devices}
    for host in sorted(view.hosts.values(), key=lambda host: host.id):
        if host.phase is HostPhase.CONNECTED:
            found = (each.device for each in standings(view, host) if each.is_free)
            # Should two hosts ever name the same device, only one of them may have it.
            free[host.id] = tuple(device for device in found if device.uuid not in taken)
            taken |= {device.uuid for device in free[host.id]}
    return free


def parts_free(view: View) -> dict[HostId, tuple[Standing, ...]]:
    """Every device that is leased in part and of which more may be leased, by connected host."""
    found: dict[HostId, tuple[Standing, ...]] = {}
    for host in view.hosts.values():
        if host.phase is HostPhase.CONNECTED and any(x.is_part for x in view.leases_on(host.id)):
            parts = (each for each in standings(view, host) if each.leased and each.has_room)
            found[host.id] = tuple(parts)
    return found


def standing_of(view: View, host_id: HostId) -> tuple[Standing, ...]:
    """The devices of one host; none if there is no such host."""
    host = view.hosts.get(host_id)
    return () if host is None else tuple(standings(view, host))


def standings(view: View, host: Host) -> Iterator[Standing]:
    """The devices of a host, in its order."""
    staying: dict[DeviceUuid, list[LeaseId]] = {}
    going: set[DeviceUuid] = set()
    held: dict[DeviceUuid, int] = {}
    for lease in view.leases_on(host.id):
        for uuid in lease.devices:
            held[uuid] = held.get(uuid, 0) + lease.share
            if lease.stays:
                staying.setdefault(uuid, []).append(lease.id)
            else:
                going.add(uuid)
    report, states = view.reports.get(host.id), dict(host.states)
    busy = _workers(view, host.id)
    is_open = host.phase is HostPhase.CONNECTED and (report is None or report.can_start)
    for device in host.devices:
        mine, state = staying.get(device.uuid, []), states.get(device.uuid)
        used_by = {*busy.get(device.uuid, ()), *(() if state is None else state.in_use_by)}
        is_freeing = device.uuid in going or not used_by.issubset(mine)
        yield Standing(
            device=device,
            left=max(0, WHOLE_DEVICE - held.get(device.uuid, 0)),
            obstacle=(None if is_open else Obstacle.HOST) or _obstacle(state, freeing=is_freeing),
        )


def _workers(view: View, host_id: HostId) -> Mapping[DeviceUuid, list[LeaseId]]:
    """The workers that are there by the host's own word, by device, wanted or not."""
    found: dict[DeviceUuid, list[LeaseId]] = {}
    report = view.reports.get(host_id)
    for worker in report.workers if report is not None else ():
        for uuid in (worker.device, *worker.further):
            found.setdefault(uuid, []).append(worker.lease_id)
    return found


def _obstacle(state: DeviceState | None, *, freeing: bool) -> Obstacle | None:
    if state is None:
        return Obstacle.FREEING
    if state.held_elsewhere:
        return Obstacle.ELSEWHERE
    if state.health is not Health.HEALTHY:
        return Obstacle.QUARANTINED
    if any(not process.graphics_only for process in state.foreign):
        return Obstacle.FOREIGN
    return Obstacle.FREEING if freeing else None
