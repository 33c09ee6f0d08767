"""Hosts as a pass sees them, made from the books.

Called by `pool_view.py` for every host of every pass, so what does not change while a host is up
is worked out once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial

from jupyter_gpupool.pool.device import Device, Health, LinkKind
from jupyter_gpupool.pool.host import DURABLE, Host, HostPhase
from jupyter_gpupool.pool.ids import DeviceUuid
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape, Obstacle

from .sight import Sight
from .standing import Standing, View, standings

_RACK = "rack="
_MANY = 10_000
_COUNTS = tuple(range(_MANY + 1))
"""Each number as one object."""
_NOT_OURS = (Obstacle.ELSEWHERE, Obstacle.FOREIGN, Obstacle.QUARANTINED)
_TOGETHER = {
    LinkKind.NVLINK: frozenset({LinkKind.NVLINK}),
    LinkKind.PCIE_SWITCH: frozenset({LinkKind.NVLINK, LinkKind.PCIE_SWITCH}),
}


def host_shapes(view: View, sight: Sight) -> Iterator[HostShape]:
    """Every host that is not lost. What runs on a silent one is assumed to run on."""
    places = (record.claim.scheduler for record in view.placed())
    schedulers = Counter(place.host_id for place in places if place is not None)
    for host in view.hosts.values():
        if host.phase is not HostPhase.LOST:
            count, leases = schedulers[host.id], view.leases_on(host.id)
            parts = (host, view.reports.get(host.id), _COUNTS[min(count, _MANY)], *leases)
            yield sight.hosts.of(host.id, parts, partial(_host_shape, view, host, count))


def _host_shape(view: View, host: Host, schedulers: int) -> HostShape:
    lost = {uuid for uuid, state in host.states if state.health is Health.LOST}
    known = (each for each in standings(view, host) if each.leased or each.device.uuid not in lost)
    islands = _groups(host.devices, LinkKind.NVLINK)
    switches = _groups(host.devices, LinkKind.PCIE_SWITCH)
    return HostShape(
        id=host.id,
        devices=tuple(_device_view(each, islands, switches) for each in known),
        cpu=host.cpus * 1000,
        memory_bytes=host.memory_bytes,
        rack=_rack(host.labels),
        labels=host.labels,
        durable=DURABLE in host.labels,
        schedulers=schedulers,
    )


def _device_view(
    standing: Standing, islands: Mapping[DeviceUuid, int], switches: Mapping[DeviceUuid, int]
) -> DeviceView:
    device = standing.device
    return DeviceView(
        uuid=device.uuid,
        model=device.model,
        memory_bytes=device.memory_bytes,
        may_be_leased=standing.obstacle is None,
        counts=standing.leased or standing.obstacle not in _NOT_OURS,
        obstacle=standing.obstacle,
        island=islands[device.uuid],
        switch=switches[device.uuid],
        numa=-1 if device.numa_node is None else device.numa_node,
    )


def _rack(labels: Iterable[str]) -> str:
    return min((x.removeprefix(_RACK) for x in labels if x.startswith(_RACK)), default="")


@lru_cache(maxsize=4096)
def _groups(devices: tuple[Device, ...], kind: LinkKind) -> Mapping[DeviceUuid, int]:
    """Number the groups of devices that reach each other so closely, each device in one."""
    near = _TOGETHER[kind]
    group = {device.uuid: number for number, device in enumerate(devices)}
    for device in devices:
        for link in device.links:
            if link.kind in near and link.to in group:
                one, other = group[device.uuid], group[link.to]
                low = min(one, other)
                # Few devices a host: joining two groups may look at all of them.
                group = {u: low if n in (one, other) else n for u, n in group.items()}
    return group
