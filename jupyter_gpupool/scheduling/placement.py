"""Which devices a claim gets: as few hosts as can be, and the smallest gap that fits.

Called by `passes.plan`, one claim at a time. The best fit on one host leaves large hosts whole
for large gangs; only a claim that fits on no single host is spread, over the fullest first.
"""

from collections.abc import Mapping, Sequence

from jupyter_gpupool.pool.ids import HostId

from .snapshot import FreeDevice, HostView, Placed, Want

Free = Mapping[HostId, Sequence[FreeDevice]]


def place(want: Want, free: Free) -> tuple[Placed, ...]:
    """Choose between `minimum` and `maximum` devices for `want`, or none if the gang is short."""
    fitting = {
        host: [d for d in devices if want.accepts(host, d)] for host, devices in free.items()
    }
    count = min(want.maximum, sum(map(len, fitting.values())))
    if count == 0 or count < want.minimum:
        return ()
    return tuple(_fewest_hosts(fitting, count))


def scheduler_host(want: Want, devices: Sequence[Placed], hosts: Sequence[HostView]) -> HostId:
    """Where its scheduler runs: where it is, else the least burdened durable host, else with it."""
    if want.scheduler_host is not None:
        return want.scheduler_host
    durable = [h for h in hosts if h.durable and h.can_start and h.id not in want.barred]
    if durable:
        burden = {host.id: (host.id in want.avoid, host.schedulers, host.id) for host in durable}
        return min(burden, key=burden.__getitem__)
    return devices[0].host_id


def _fewest_hosts(fitting: Mapping[HostId, Sequence[FreeDevice]], count: int) -> list[Placed]:
    chosen: list[Placed] = []
    left = dict(fitting)
    while len(chosen) < count:
        host = _best_host(left, count - len(chosen))
        chosen += [Placed(host_id=host, device=d.uuid) for d in left.pop(host)]
    return chosen[:count]


def _best_host(fitting: Mapping[HostId, Sequence[FreeDevice]], count: int) -> HostId:
    whole = [host for host, devices in fitting.items() if len(devices) >= count]
    if whole:
        return min(whole, key=lambda host: (len(fitting[host]), host))
    return min(fitting, key=lambda host: (-len(fitting[host]), host))
