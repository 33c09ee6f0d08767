"""One scheduling pass: first come, first served, gangs whole, fewest hosts.

Called by the manager whenever something may have changed. A claim that cannot be served keeps
everybody behind it from the devices it could use, so that no large gang starves.
"""

from collections.abc import Sequence
from dataclasses import replace

from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.pool.units import format_bytes, plural

from .explain import obstacles_in_words
from .line import Line
from .placement import Free, place, scheduler_host
from .snapshot import FreeDevice, Grant, HostView, Placed, Plan, Snapshot, Wait, Want


def plan(snapshot: Snapshot) -> Plan:
    """Decide who gets what now, and tell everybody else why not."""
    hosts = sorted(snapshot.hosts, key=lambda host: host.id)
    free = {h.id: sorted(h.free, key=lambda device: device.uuid) for h in hosts if h.can_start}
    line = Line(snapshot)
    grants: list[Grant] = []
    waits: list[Wait] = []
    for asked in sorted(snapshot.wants, key=lambda want: (want.since, want.claim_id)):
        want = _with_somewhere_left(asked, line)
        left = line.left(free)
        devices = place(want, left) if left else ()
        if devices:
            grants.append(_grant(want, devices, hosts))
            hosts = _with_scheduler(hosts, grants[-1].scheduler_host)
            free = _without(free, devices)
        if not devices or (want.minimum == 0 and len(devices) < want.maximum):
            waits.append(_wait(want, len(devices), left, line))
            if not waits[-1].never:
                line.join(want)
    return Plan(grants=tuple(grants), waits=tuple(waits))


def _with_somewhere_left(want: Want, line: Line) -> Want:
    # A host where it failed is better than none: the fault may have been the claim's own.
    if want.avoid and line.possible(want) < max(1, want.minimum):
        return replace(want, avoid=frozenset())
    return want


def _grant(want: Want, devices: tuple[Placed, ...], hosts: Sequence[HostView]) -> Grant:
    names = len({placed.host_id for placed in devices})
    what = f"{plural(len(devices), 'device')} on {plural(names, 'host')}"
    return Grant(
        claim_id=want.claim_id,
        scheduler_host=scheduler_host(want, devices, hosts),
        devices=devices,
        reason=f"{what} granted.",
    )


def _with_scheduler(hosts: Sequence[HostView], where: HostId) -> list[HostView]:
    return [replace(host, schedulers=host.schedulers + (host.id == where)) for host in hosts]


def _without(
    free: dict[HostId, list[FreeDevice]], devices: tuple[Placed, ...]
) -> dict[HostId, list[FreeDevice]]:
    taken = {placed.device for placed in devices}
    return {host: [d for d in left if d.uuid not in taken] for host, left in free.items()}


def _wait(want: Want, got: int, left: Free, line: Line) -> Wait:
    possible, ahead = line.possible(want), line.ahead_of(want)
    if possible < want.minimum:
        reason = _never(want, possible)
        return Wait(claim_id=want.claim_id, place=ahead + 1, reason=reason, never=True)
    needed = want.minimum or want.maximum
    fitting = sum(want.accepts(host, d) for host, devices in left.items() for d in devices)
    start = f"{plural(ahead, 'claim')} ahead; waiting" if ahead else "Waiting"
    what = f"{needed - (got or fitting)} of {_devices(want, needed)}"
    but = obstacles_in_words(line.hindered(want))
    reason = f"{start} for {what}{'; ' if but else ''}{but}."
    return Wait(claim_id=want.claim_id, place=ahead + 1, reason=reason)


def _never(want: Want, possible: int) -> str:
    why = f" {want.barred_why}" if want.barred_why else ""
    return (
        f"Not possible as the pool is: {_devices(want, want.minimum)} wanted,"
        f" {possible} joined.{why} It starts when a host brings more."
    )


def _devices(want: Want, count: int) -> str:
    model = f"{want.model} " if want.model else ""
    memory = f" with {format_bytes(want.gpu_memory_bytes)}" if want.gpu_memory_bytes else ""
    return f"{plural(count, f'{model}device')}{memory}"
