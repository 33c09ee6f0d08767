"""What a pool that can grow and shrink should do: hosts that would start claims, hosts that may go.

Made after a pass from its books, for the providers. Claims that wait for devices are packed, in the
order of the line, on hosts that a provider could bring; a host may go once it has been empty for
its keep time and nobody who waits could use it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jupyter_gpupool.pool.ids import ClaimId, HostId

from .amounts import WHOLE_DEVICE
from .decisions import Constraint, Waiting
from .inventory import UNCOUNTED
from .ledger import Ledger, Member
from .prospects import would_do
from .shape import HostShape, WorkerShape

_HELPED = frozenset({Constraint.DEVICES, Constraint.GANG, Constraint.NEVER})
"""More hosts help against these; limits and guarantees stay as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Hosts that a provider could bring.

    Attributes:
        host: One of them, empty.
        most: How many of them at most.
        cost: For comparing offers that serve equally well; any unit, per host.
    """

    name: str
    host: HostShape
    most: int
    cost: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsWanted:
    """So many hosts of an offer would start these claims."""

    offer: str
    count: int
    claims: tuple[ClaimId, ...]


@dataclass(slots=True)
class _NewHost:
    """An offered host as it fills: free thousandths of each device, cores and memory."""

    offer: Offer
    devices: list[int]
    cpu: int
    memory: int

    def takes(self, shape: WorkerShape) -> bool:
        """Whether one more worker fits."""
        if shape.cpu > self.cpu or shape.memory_bytes > self.memory:
            return False
        if shape.share:
            return max(self.devices, default=0) >= shape.share
        return self.devices.count(WHOLE_DEVICE) >= shape.devices

    def add(self, shape: WorkerShape) -> None:
        """Put one worker here; it has to fit."""
        if shape.share:
            tightest = min(free for free in self.devices if free >= shape.share)
            self.devices[self.devices.index(tightest)] -= shape.share
        for _ in range(shape.devices):
            self.devices[self.devices.index(WHOLE_DEVICE)] = 0
        self.cpu -= shape.cpu
        self.memory -= shape.memory_bytes


@dataclass(slots=True)
class _Packing:
    """Which offered hosts are wanted so far, and by whom.

    Attributes:
        hosts: Those on which there is room still.
        full: How many have none any more, by offer: nobody has to look at them again.
        added: What would be held besides what the books say, by queue and kind.
    """

    ledger: Ledger
    offers: Sequence[Offer]
    hosts: list[_NewHost] = field(default_factory=list)
    full: dict[str, int] = field(default_factory=dict)
    claims: dict[str, list[ClaimId]] = field(default_factory=dict)
    added: dict[int, list[int]] = field(default_factory=dict)


def hosts_wanted(
    ledger: Ledger, waits: Iterable[Waiting], offers: Sequence[Offer]
) -> tuple[HostsWanted, ...]:
    """Say which of the offered hosts would start claims that wait for devices.

    Args:
        ledger: The books after the pass.
        waits: Who waits and why, in the order of the line.
        offers: What providers could bring; the cheapest that serves a claim is taken.
    """
    packing = _Packing(ledger, sorted(offers, key=lambda offer: (offer.cost, offer.name)))
    for wait in waits:
        if wait.constraint in _HELPED:
            _pack(packing, ledger.members[wait.claim_id])
    return tuple(
        HostsWanted(offer=offer.name, count=count, claims=tuple(packing.claims[offer.name]))
        for offer in packing.offers
        if (count := _count_of(packing, offer))
    )


def _pack(packing: _Packing, member: Member) -> None:
    count = member.needs
    if not _within_limits(packing, member, count):
        return
    for offer in packing.offers:
        hosts = _hosts_for(packing, offer, member.view.worker, count)
        if hosts is not None:
            others = [host for host in packing.hosts if host.offer is not offer]
            packing.hosts = [*others, *(host for host in hosts if any(host.devices))]
            filled = len(hosts) + len(others) - len(packing.hosts)
            packing.full[offer.name] = packing.full.get(offer.name, 0) + filled
            packing.claims.setdefault(offer.name, []).append(member.view.id)
            _count(packing, member, count)
            return


def _hosts_for(
    packing: _Packing, offer: Offer, shape: WorkerShape, count: int
) -> list[_NewHost] | None:
    """The hosts of an offer once so many workers are on them, or None if they do not fit."""
    if not all(would_do(shape, offer.host, device) for device in offer.host.devices):
        return None
    hosts = [host for host in packing.hosts if host.offer is offer]
    full, at, mine = packing.full.get(offer.name, 0), 0, -1
    for _ in range(count):
        # Whoever has no room for one worker has none for the next.
        while at < len(hosts) and not hosts[at].takes(shape):
            at += 1
        if at == len(hosts):
            if at + full >= offer.most or not _empty(offer).takes(shape):
                return None
            hosts.append(_empty(offer))
        elif mine < at:
            hosts[at] = _copy(hosts[at])
        mine = at
        hosts[at].add(shape)
    return hosts


def _count_of(packing: _Packing, offer: Offer) -> int:
    return packing.full.get(offer.name, 0) + sum(host.offer is offer for host in packing.hosts)


def _empty(offer: Offer) -> _NewHost:
    host, devices = offer.host, [WHOLE_DEVICE] * len(offer.host.devices)
    return _NewHost(offer, devices, host.cpu or UNCOUNTED, host.memory_bytes or UNCOUNTED)


def _copy(host: _NewHost) -> _NewHost:
    return _NewHost(host.offer, list(host.devices), host.cpu, host.memory)


def _within_limits(packing: _Packing, member: Member, count: int) -> bool:
    ledger = packing.ledger
    for queue in member.path:
        added = packing.added.get(queue, (0,) * len(ledger.kinds))
        for kind, each in enumerate(member.each):
            wanted = ledger.held[queue][kind] + added[kind] + each * count
            if each and wanted > ledger.limit[queue][kind]:
                return False
    return True


def _count(packing: _Packing, member: Member, count: int) -> None:
    for queue in member.path:
        added = packing.added.setdefault(queue, [0] * len(packing.ledger.kinds))
        for kind, each in enumerate(member.each):
            added[kind] += each * count


def hosts_that_may_go(
    ledger: Ledger,
    waits: Iterable[Waiting],
    empty_since_s: Mapping[HostId, float],
    *,
    keep_s: float,
) -> tuple[HostId, ...]:
    """Say which hosts a provider may take away, in the order of their ids.

    Args:
        ledger: The books after the pass.
        waits: Who waits and why.
        empty_since_s: Since when hosts have held nothing; those that are not named stay.
        keep_s: How long an empty host is kept, so that the next claim finds it warm.
    """
    helped = (ledger.members[wait.claim_id] for wait in waits if wait.constraint in _HELPED)
    waiting = {member.view.worker for member in helped}
    used, long_ago_s = frozenset(_used(ledger)), ledger.now_s - keep_s
    return tuple(
        host.id
        for host in ledger.inventory.hosts
        if host.id not in used
        and not host.schedulers
        and empty_since_s.get(host.id, ledger.now_s) <= long_ago_s
        and not any(would_do(shape, host, d) for shape in waiting for d in host.devices)
    )


def _used(ledger: Ledger) -> Iterator[HostId]:
    inventory = ledger.inventory
    for member in ledger.members.values():
        for spot in (*member.spots, *member.promised):
            yield inventory.hosts[inventory.bays[spot.bay].host].id
