"""One scheduling pass: first come, first served, gangs whole, fewest hosts.

Called by the manager whenever something may have changed. A claim that cannot be served keeps
everybody behind it from the devices it could use, so that no large gang starves.
"""

from collections.abc import Sequence
from dataclasses import replace

from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.pool.units import format_bytes, plural

from .placement import place, scheduler_host
from .snapshot import FreeDevice, Grant, HostView, Placed, Plan, Snapshot, Wait, Want


def plan(snapshot: Snapshot) -> Plan:
    """Decide who gets what now, and tell everybody else why not."""
    hosts = sorted(snapshot.hosts, key=lambda host: host.id)
    free = {host.id: list(host.free) for host in hosts}
    grants: list[Grant] = []
    waits: list[Wait] = []
    blocked: list[Want] = []
    for want in sorted(snapshot.wants, key=lambda want: (want.since, want.claim_id)):
        devices = place(want, _left_by(blocked, free))
        if hosts and (devices or (want.starts and not want.minimum)):
            hosts, grants = _grant(want, devices, hosts, grants)
            free = _without(free, devices)
        if len(devices) < want.maximum and (want.minimum == 0 or not devices):
            waits.append(_wait(want, devices, free, blocked, hosts))
            if not waits[-1].never:
                blocked.append(want)
    return Plan(grants=tuple(grants), waits=tuple(waits))


def _left_by(
    blocked: Sequence[Want], free: dict[HostId, list[FreeDevice]]
) -> dict[HostId, list[FreeDevice]]:
    if not blocked or not any(free.values()):
        return free
    return {
        host: [d for d in devices if not any(want.accepts(d) for want in blocked)]
        for host, devices in free.items()
    }


def _grant(
    want: Want, devices: tuple[Placed, ...], hosts: list[HostView], grants: list[Grant]
) -> tuple[list[HostView], list[Grant]]:
    where = scheduler_host(want, devices, hosts)
    names = len({placed.host_id for placed in devices})
    reason = f"{plural(len(devices), 'device')} on {plural(names, 'host')} granted."
    grant = Grant(claim_id=want.claim_id, scheduler_host=where, devices=devices, reason=reason)
    counted = [replace(host, schedulers=host.schedulers + (host.id == where)) for host in hosts]
    return counted, [*grants, grant]


def _without(
    free: dict[HostId, list[FreeDevice]], devices: tuple[Placed, ...]
) -> dict[HostId, list[FreeDevice]]:
    taken = {placed.device for placed in devices}
    return {host: [d for d in left if d.uuid not in taken] for host, left in free.items()}


def _wait(
    want: Want,
    got: tuple[Placed, ...],
    free: dict[HostId, list[FreeDevice]],
    blocked: Sequence[Want],
    hosts: Sequence[HostView],
) -> Wait:
    possible = sum(want.accepts(d) for host in hosts for d in host.capacity)
    needed = want.minimum or want.maximum
    if possible < needed:
        return Wait(
            claim_id=want.claim_id,
            place=len(blocked) + 1,
            reason=_never(want, needed, possible),
            never=want.minimum > 0,
        )
    fitting = sum(want.accepts(d) for devices in free.values() for d in devices)
    missing = needed - len(got) - (0 if blocked else fitting)
    ahead = f"{plural(len(blocked), 'claim')} ahead; " if blocked else ""
    reason = f"{ahead}waiting for {max(1, missing)} of {plural(needed, _kind(want))}."
    return Wait(claim_id=want.claim_id, place=len(blocked) + 1, reason=_upper(reason))


def _never(want: Want, needed: int, possible: int) -> str:
    return (
        f"Not possible as the pool is: {plural(needed, _kind(want))} wanted,"
        f" {possible} joined. It starts when a host brings more."
    )


def _kind(want: Want) -> str:
    model = want.model or "device"
    if want.gpu_memory_bytes:
        return f"{model} with {format_bytes(want.gpu_memory_bytes)}"
    return model


def _upper(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
