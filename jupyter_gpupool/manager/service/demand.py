"""What the pool could use, and what it could do without: for whoever brings hosts.

Asked by the route of demand. Until providers say what they can bring, hosts like those that are
there are taken to be on offer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.ids import DeviceUuid, HostId
from jupyter_gpupool.pool.units import format_bytes
from jupyter_gpupool.scheduling.elasticity import (
    HostsWanted,
    Offer,
    hosts_that_may_go,
    hosts_wanted,
)
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.rounds import books_of, decide
from jupyter_gpupool.scheduling.shape import DeviceView, HostShape
from jupyter_gpupool.scheduling.steps import Steps

from .books import Books

KEEP_S = 600.0
"""How long an empty host is kept, so that the next claim finds it warm."""
MOST_OFFERED = 1000
"""How many hosts of one shape are taken to be on offer."""


class Emptiness:
    """Since when hosts have held nothing: neither a device of a claim nor its scheduler."""

    def __init__(self) -> None:
        self.since_s: dict[HostId, float] = {}

    def follow(self, host_ids: Iterable[HostId], books: Books, now_s: float) -> None:
        """Look at these hosts, on which something may have changed."""
        for host_id in host_ids:
            host = books.hosts.get(host_id)
            is_there = host is not None and host.phase is not HostPhase.LOST
            if is_there and not _is_used(host_id, books):
                self.since_s.setdefault(host_id, now_s)
            else:
                self.since_s.pop(host_id, None)


def _is_used(host_id: HostId, books: Books) -> bool:
    if next(books.leases_on(host_id), None) is not None:
        return True
    places = (record.claim.scheduler for record in books.placed())
    return any(place is not None and place.host_id == host_id for place in places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What hosts the pool wants, and which it does not need.

    Attributes:
        offers: What is taken to be on offer, by name.
        may_go: Hosts, with the moment since when they hold nothing.
    """

    wanted: tuple[HostsWanted, ...]
    offers: dict[str, HostShape]
    may_go: tuple[tuple[HostId, float], ...]


def demand_of(view: PoolView, steps: Steps, empty_since_s: dict[HostId, float]) -> Demand:
    """Take a pass on books that are thrown away, and say what would be left to wish for."""
    ledger = books_of(view)
    waits = decide(ledger, steps).waits
    offers = tuple(offers_like(view.hosts))
    # A host that is there for schedulers is not there for its devices.
    spare = {h.id for h in view.hosts if h.devices and not h.durable and h.takes_more}
    empty = {host_id: since for host_id, since in empty_since_s.items() if host_id in spare}
    may_go = hosts_that_may_go(ledger, waits, empty, keep_s=KEEP_S)
    return Demand(
        wanted=hosts_wanted(ledger, waits, offers),
        offers={offer.name: offer.host for offer in offers},
        may_go=tuple((host_id, empty[host_id]) for host_id in may_go),
    )


def offers_like(hosts: Iterable[HostShape]) -> Iterator[Offer]:
    """An offer for each shape of host that there is, in order of their names."""
    shapes = {_emptied(host) for host in hosts if host.devices and not host.durable}
    names: dict[str, int] = {}
    for shape in sorted(shapes, key=lambda s: (_named(s), s.cpu, s.memory_bytes, sorted(s.labels))):
        name = _named(shape)
        names[name] = names.get(name, 0) + 1
        numbered = name if names[name] == 1 else f"{name} ({names[name]})"
        yield Offer(name=numbered, host=shape, most=MOST_OFFERED, cost=float(len(shape.devices)))


def _emptied(host: HostShape) -> HostShape:
    """A host like this one with nothing on it, the same for all that are alike."""
    kinds = sorted((device.model, device.memory_bytes) for device in host.devices)
    devices = (DeviceView(DeviceUuid(str(n)), *kind) for n, kind in enumerate(kinds))
    labels = frozenset(label for label in host.labels if not label.startswith("rack="))
    return HostShape(
        HostId(""), tuple(devices), cpu=host.cpu, memory_bytes=host.memory_bytes, labels=labels
    )


def _named(shape: HostShape) -> str:
    kinds = [(device.model, device.memory_bytes) for device in shape.devices]
    each = (
        f"{kinds.count(kind)} × {kind[0]} with {format_bytes(kind[1])}"
        for kind in sorted(set(kinds))
    )
    return ", ".join(each)
