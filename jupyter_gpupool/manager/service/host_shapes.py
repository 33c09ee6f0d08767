"""Hosts as a pass sees them, made from the books.

Called by `pool_view.py`, which says of which hosts anything was stirred: all others are as they
were seen before. What does not change while a host is up is worked out once.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

from jupyter_gpupool.pool.device import Device, Health, LinkKind
from jupyter_gpupool.pool.host import DURABLE, Host, HostPhase
from jupyter_gpupool.pool.ids import DeviceUuid, HostId
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape, Obstacle

from .records import ClaimRecord
from .sight import Places, Sight
from .standing import Standing, View, standings
from .stirred import Stirred

_RACK = "rack="
_NOT_OURS = (Obstacle.ELSEWHERE, Obstacle.FOREIGN, Obstacle.QUARANTINED)
_TOGETHER = {
    LinkKind.NVLINK: frozenset({LinkKind.NVLINK}),
    LinkKind.PCIE_SWITCH: frozenset({LinkKind.NVLINK, LinkKind.PCIE_SWITCH}),
}


def host_shapes(view: View, sight: Sight, news: Stirred | None) -> tuple[HostShape, ...]:
    """Every host that is not lost. What runs on a silent one is assumed to run on.

    Args:
        view: The books, or a unit of work on them.
        sight: What was seen of hosts before.
        news: Of which hosts and claims anything was stirred; None is all.
    """
    if news is None:
        sight.places = Places()
        for record in view.placed():
            sight.places.put(record.claim.id, _scheduler_host(record))
        looked_at = tuple(host_id for host_id, _ in view.hosts.items())
        sight.hosts.begin_anew(looked_at)
    else:
        records = ((claim_id, view.claims.get(claim_id)) for claim_id in news.claims)
        moved = (sight.places.put(i, None if r is None else _scheduler_host(r)) for i, r in records)
        looked_at = (*news.hosts, *chain.from_iterable(moved))
    for host_id in looked_at:
        host = view.hosts.get(host_id)
        if host is None:
            sight.hosts.forget(host_id)
        else:
            sight.hosts.keep(host_id, _host_shape(view, host, sight.places.held[host_id]))
    return sight.hosts.all()


def _scheduler_host(record: ClaimRecord) -> HostId | None:
    place = record.claim.scheduler
    return place.host_id if place is not None and record.is_placed else None


def _host_shape(view: View, host: Host, schedulers: int) -> HostShape | None:
    """The host as it stands, if passes see it."""
    if host.phase is HostPhase.LOST:
        return None
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
