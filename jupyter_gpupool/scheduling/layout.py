"""What of a pool stays while leases come and go: its hosts, where each device is, who accepts whom.

Made once and shared by all copies of an inventory.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from jupyter_gpupool.pool.ids import DeviceUuid, HostId

from .bays import Bay, Kind, by_kind, kind_of, leasable
from .shape import HostShape, WorkerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The hosts of a pool, and their bays by number.

    Attributes:
        hosts: In the order of their ids.
        numbers: The number of each host.
        bays_of: The bays of each host.
        where: The bay of each device, and its place there.
        racks: Bits of the bays of each rack; hosts that name none are in the rack "".
        kinds: The kinds of bays by number, each with the bits of the bays of it.
    """

    hosts: tuple[HostShape, ...]
    numbers: dict[HostId, int]
    bays_of: tuple[tuple[int, ...], ...]
    where: dict[DeviceUuid, tuple[int, int]]
    racks: dict[str, int]
    kinds: dict[Kind, int]
    _accepting: dict[WorkerShape, int] = field(default_factory=dict)
    _accepting_kinds: dict[WorkerShape, frozenset[int]] = field(default_factory=dict)

    def accepting(self, shape: WorkerShape) -> int:
        """Bits of the bays whose devices and host a shape accepts, free or not."""
        found = self._accepting.get(shape)
        if found is None:
            found = 0
            for kind, bays in self.kinds.items():
                if kind.accepts(shape):
                    found |= bays
            for host_id in sorted(shape.avoid | shape.barred):
                found &= ~self.bays_on(host_id)
            self._accepting[shape] = found
        return found

    def accepting_kinds(self, shape: WorkerShape) -> frozenset[int]:
        """The numbers of the kinds of bays that a shape accepts, single hosts left aside."""
        found = self._accepting_kinds.get(shape)
        if found is None:
            accepted = (n for n, kind in enumerate(self.kinds) if kind.accepts(shape))
            found = self._accepting_kinds[shape] = frozenset(accepted)
        return found

    def bays_on(self, host_id: HostId) -> int:
        """Bits of the bays of a host; none if it is not there."""
        number = self.numbers.get(host_id)
        return 0 if number is None else sum(1 << bay for bay in self.bays_of[number])

    def rack_of(self, host: int) -> int:
        """Bits of the bays in the rack of a host, or of its own alone if it names none."""
        shape = self.hosts[host]
        return self.racks[shape.rack] if shape.rack else self.bays_on(shape.id)

    def kind_number(self, bay: int) -> int:
        """The number of a bay's kind."""
        return next(n for n, bays in enumerate(self.kinds.values()) if bays >> bay & 1)

    def with_host(self, host: HostShape) -> "Layout | None":
        """Let a host be as it is seen now; None if its devices are others: all is new then."""
        number = self.numbers.get(host.id)
        if number is None or not _same_devices(self.hosts[number], host):
            return None
        before = self.hosts[number]
        hosts = (*self.hosts[:number], host, *self.hosts[number + 1 :])
        is_same_kind = (host.labels, host.takes_more) == (before.labels, before.takes_more)
        if is_same_kind and host.rack == before.rack:
            return replace(self, hosts=hosts)
        kinds = dict(self.kinds)
        for bay, devices in zip(self.bays_of[number], by_kind(host.devices), strict=True):
            kinds[kind_of(before, devices)] &= ~(1 << bay)
            kind = kind_of(host, devices)
            kinds[kind] = kinds.get(kind, 0) | 1 << bay
        racks = _racks(hosts, self.bays_of)
        return replace(
            self, hosts=hosts, kinds=kinds, racks=racks, _accepting={}, _accepting_kinds={}
        )


def lay_out(hosts: Iterable[HostShape]) -> tuple[Layout, list[Bay]]:
    """Number hosts, bays and kinds; the bays come with all free that may be leased."""
    ordered = tuple(sorted(hosts, key=lambda host: host.id))
    where: dict[DeviceUuid, tuple[int, int]] = {}
    kinds: dict[Kind, int] = {}
    bays: list[Bay] = []
    bays_of: list[tuple[int, ...]] = []
    for number, host in enumerate(ordered):
        first = len(bays)
        bays.extend(_bays(number, host, first, where, kinds))
        bays_of.append(tuple(range(first, len(bays))))
    layout = Layout(
        hosts=ordered,
        numbers={host.id: number for number, host in enumerate(ordered)},
        bays_of=tuple(bays_of),
        where=where,
        racks=_racks(ordered, bays_of),
        kinds=kinds,
    )
    return layout, bays


def _bays(
    number: int,
    host: HostShape,
    first: int,
    where: dict[DeviceUuid, tuple[int, int]],
    kinds: dict[Kind, int],
) -> Iterator[Bay]:
    for bay, devices in enumerate(by_kind(host.devices), first):
        kind = kind_of(host, devices)
        kinds[kind] = kinds.get(kind, 0) | 1 << bay
        doubled = 0
        for position, device in enumerate(devices):
            # Should two hosts ever name the same device, only one of them may have it.
            place = (bay, position)
            if where.setdefault(device.uuid, place) is not place:
                doubled |= 1 << position
        free = leasable(devices)
        yield Bay(number, devices, list(kinds).index(kind), free, free & ~doubled, doubled)


def _racks(hosts: Iterable[HostShape], bays_of: Iterable[tuple[int, ...]]) -> dict[str, int]:
    racks: dict[str, int] = {}
    for host, bays in zip(hosts, bays_of, strict=True):
        for bay in bays:
            racks[host.rack] = racks.get(host.rack, 0) | 1 << bay
    return racks


def _same_devices(one: HostShape, other: HostShape) -> bool:
    return [device[:3] for device in one.devices] == [device[:3] for device in other.devices]
