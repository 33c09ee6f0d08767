"""What is free, host by host: the books of devices, cores and memory.

Bays are bits of whole numbers, one number for each count of free devices: asking which bays have
exactly three free devices of a fitting kind is one `and`, at ten thousand devices as at ten.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jupyter_gpupool.pool.ids import HostId

from .amounts import WHOLE_DEVICE
from .bays import Bay, by_kind, leasable
from .bits import bits, lowest
from .fragmentation import BayState, HostState, measured_by
from .layout import Layout, lay_out
from .scores import Scores
from .shape import HeldWorker, HostShape, WorkerShape
from .topology import Groups, groups_of, nearest_in
from .workload import TYPICAL, Workload

UNCOUNTED = 1 << 62
"""Cores and memory of a host that says nothing of them."""


class Spot(NamedTuple):
    """Where one worker is: a bay, the bits of its devices there, and its part of one if shared.

    Attributes:
        share: Thousandths; 0 means that its devices are its alone.
    """

    bay: int
    devices: int
    share: int = 0


class Inventory:
    """Free devices, cores and memory of all hosts. Changed by `take` and `give`, its inverse.

    Attributes:
        layout: What stays while leases come and go.
        cpu: Thousandths of cores that are free on each host.
        memory: Bytes that are free on each host.
        by_free: Bits of the bays that have exactly so many devices wholly free.
        closed: Bits of the bays with a device that something outside the books keeps.
        with_parts: Bits of the bays with a device that is held in part.
        shared_by: Bits of the bays with such a device, by who shares it.
    """

    def __init__(self, hosts: Iterable[HostShape]) -> None:
        self.layout: Layout
        self.bays: list[Bay]
        self.layout, self.bays = lay_out(hosts)
        self.cpu = [host.cpu or UNCOUNTED for host in self.hosts]
        self.memory = [host.memory_bytes or UNCOUNTED for host in self.hosts]
        self.by_free: list[int] = [0]
        self.closed = self.with_parts = 0
        self.shared_by: dict[str, int] = {}
        self._workload = TYPICAL
        self._scores: Scores | None = None
        for number, bay in enumerate(self.bays):
            self._count(number, bay.whole.bit_count())
            self._note_closed(number)

    def _note_closed(self, number: int) -> None:
        bay, here = self.bays[number], 1 << number
        is_open = bay.leasable == (1 << len(bay.devices)) - 1
        self.closed = self.closed & ~here if is_open else self.closed | here

    @property
    def hosts(self) -> tuple[HostShape, ...]:
        """All hosts, in the order of their ids."""
        return self.layout.hosts

    # Copies, and changes from outside the books

    def copy(self) -> "Inventory":
        """Give books that change apart from these; a fiftieth of the work of making them anew."""
        other = object.__new__(Inventory)
        other.__dict__ |= self.__dict__
        other.bays = [bay.copy() for bay in self.bays]
        other.cpu, other.memory = list(self.cpu), list(self.memory)
        other.by_free, other.shared_by = list(self.by_free), dict(self.shared_by)
        if self._scores is not None:
            other._scores = self._scores.copy(other._state_of)
        return other

    def replace(self, host: HostShape) -> bool:
        """Let a host be as it is seen now, with what is held there.

        Returns:
            False if it is new or its devices are others: the books have to be made anew then.
        """
        layout, number = self.layout.with_host(host), self.host_number(host.id)
        if layout is None or number is None:
            return False
        before = self.hosts[number]
        self.cpu[number] += (host.cpu or UNCOUNTED) - (before.cpu or UNCOUNTED)
        self.memory[number] += (host.memory_bytes or UNCOUNTED) - (before.memory_bytes or UNCOUNTED)
        if layout.kinds != self.layout.kinds:
            self._scores = None
        self.layout = layout
        for bay, devices in zip(self.bays_of(number), by_kind(host.devices), strict=True):
            self.bays[bay].kind = layout.kind_number(bay)
            self.bays[bay].devices, self.bays[bay].leasable = devices, leasable(devices)
            self._note_closed(bay)
            self._free(bay, (1 << len(devices)) - 1)
        self._touch(number)
        return True

    def expect(self, workload: Workload) -> None:
        """Measure from now on by this workload what is worth keeping free."""
        if workload != self._workload:
            self._workload, self._scores = workload, None

    @property
    def scores(self) -> Scores:
        """Which bays cost a worker least, by what is free now."""
        if self._scores is None:
            measure = measured_by(self._workload, tuple(self.layout.kinds))
            self._scores = Scores(measure, self.layout.bays_of, self._state_of)
        return self._scores

    def _state_of(self, host: int) -> HostState:
        # A host that counts no cores has the same none, however much is held there.
        shape, bays = self.layout.hosts[host], self.layout.bays_of[host]
        cpu = self.cpu[host] if shape.cpu else UNCOUNTED
        memory = self.memory[host] if shape.memory_bytes else UNCOUNTED
        return HostState(cpu, memory, tuple([_state(self.bays[bay]) for bay in bays]))

    def _touch(self, host: int) -> None:
        if self._scores is not None:
            self._scores.touch(host)

    # What fits where

    def accepting(self, shape: WorkerShape) -> int:
        """Bits of the bays whose devices and host a shape accepts, free or not."""
        return self.layout.accepting(shape)

    def room(self, number: int, shape: WorkerShape) -> int:
        """How many workers of a shape fit in a bay now, parts of devices left aside."""
        bay = self.bays[number]
        most = bay.whole.bit_count() // shape.devices if shape.devices else UNCOUNTED
        if shape.cpu:
            most = min(most, self.cpu[bay.host] // shape.cpu)
        if shape.memory_bytes:
            most = min(most, self.memory[bay.host] // shape.memory_bytes)
        return most

    # Changing it

    def take(self, shape: WorkerShape, spot: Spot, sharer: str = "") -> None:
        """Hold what a worker holds.

        Raises:
            ValueError: If it is not free: that would lease a device twice.
        """
        bay = self.bays[spot.bay]
        partly = spot.share and bay.shared & bay.leasable & spot.devices
        if not partly and bay.whole & spot.devices != spot.devices:
            raise ValueError(f"{spot} may not be leased")
        if not self.hold(shape, spot, sharer):
            raise ValueError(f"{spot} is held already")

    def hold(self, shape: WorkerShape, spot: Spot, sharer: str = "") -> bool:
        """Hold what is held already, leasable now or not; False if another has it."""
        bay = self.bays[spot.bay]
        if spot.share:
            if not self._hold_part(spot, sharer):
                return False
        elif spot.devices:
            if (bay.held | bay.shared) & spot.devices:
                return False
            bay.held |= spot.devices
            self._set_whole(spot.bay, bay.whole & ~spot.devices)
        if shape.cpu or shape.memory_bytes:
            self._spend(bay.host, shape.cpu, shape.memory_bytes)
        self._touch(bay.host)
        return True

    def is_open(self, spot: Spot) -> bool:
        """Whether nothing outside the books keeps the devices of a spot from being leased."""
        return not spot.devices & ~self.bays[spot.bay].leasable

    def give(self, shape: WorkerShape, spot: Spot) -> None:
        """Free what a worker held."""
        bay = self.bays[spot.bay]
        if spot.share:
            self._give_part(spot)
        elif spot.devices:
            bay.held &= ~spot.devices
            self._free(spot.bay, spot.devices)
        if shape.cpu or shape.memory_bytes:
            self._spend(bay.host, -shape.cpu, -shape.memory_bytes)
        self._touch(bay.host)

    def _spend(self, host: int, cpu: int, memory_bytes: int) -> None:
        self.cpu[host] -= cpu
        self.memory[host] -= memory_bytes

    def _hold_part(self, spot: Spot, sharer: str) -> bool:
        bay, position = self.bays[spot.bay], lowest(spot.devices)
        left = bay.parts.get(position, WHOLE_DEVICE)
        if bay.held & spot.devices or left < spot.share:
            return False
        if not bay.shared & spot.devices:
            self._start_sharing(spot, position, sharer)
        bay.parts[position] = left - spot.share
        return True

    def _start_sharing(self, spot: Spot, position: int, sharer: str) -> None:
        bay, here = self.bays[spot.bay], 1 << spot.bay
        bay.sharers[position] = sharer
        bay.shared |= spot.devices
        self.with_parts |= here
        self.shared_by[sharer] = self.shared_by.get(sharer, 0) | here
        self._set_whole(spot.bay, bay.whole & ~spot.devices)

    def _give_part(self, spot: Spot) -> None:
        bay, position = self.bays[spot.bay], lowest(spot.devices)
        left = bay.parts[position] + spot.share
        if left < WHOLE_DEVICE:
            bay.parts[position] = left
            return
        del bay.parts[position]
        self._stop_sharing(spot, bay.sharers.pop(position))

    def _stop_sharing(self, spot: Spot, sharer: str) -> None:
        bay, here = self.bays[spot.bay], 1 << spot.bay
        bay.shared &= ~spot.devices
        if not bay.shared:
            self.with_parts &= ~here
        if sharer not in bay.sharers.values():
            self.shared_by[sharer] &= ~here
        self._free(spot.bay, spot.devices)

    def _free(self, number: int, devices: int) -> None:
        """Let these devices be free as far as nobody holds them and they may be leased."""
        bay = self.bays[number]
        unheld = devices & ~bay.held & ~bay.shared & ~bay.doubled
        self._set_whole(number, bay.whole & ~devices | unheld & bay.leasable)

    def _set_whole(self, number: int, whole: int) -> None:
        bay = self.bays[number]
        if whole != bay.whole:
            here, free, by_free = 1 << number, whole.bit_count(), self.by_free
            by_free[bay.whole.bit_count()] ^= here
            bay.whole = whole
            if free < len(by_free):
                by_free[free] |= here
            else:
                self._count(number, free)

    def _count(self, number: int, free: int) -> None:
        while len(self.by_free) <= free:
            self.by_free.append(0)
        self.by_free[free] |= 1 << number

    # Between numbers and names

    def spot(self, worker: HeldWorker, shape: WorkerShape) -> Spot | None:
        """Where a held worker is; None if its host or a device of it is no longer there."""
        host, where = self.host_number(worker.host_id), self.layout.where
        if host is None:
            return None
        if not worker.devices:
            return Spot(self.bays_of(host)[0], 0)
        if len(worker.devices) == 1:
            place = where.get(worker.devices[0])
            return None if place is None else Spot(place[0], 1 << place[1], shape.share)
        found = [where.get(uuid) for uuid in worker.devices]
        places = [place for place in found if place is not None]
        if len(places) < len(found) or len({bay for bay, _ in places}) > 1:
            return None
        return Spot(places[0][0], sum(1 << position for _, position in places), shape.share)

    def named(self, spot: Spot) -> HeldWorker:
        """The host and devices of a spot."""
        bay, which = self.bays[spot.bay], spot.devices
        if which & (which - 1) or not which:
            uuids = tuple([bay.devices[position].uuid for position in bits(which)])
        else:
            uuids = (bay.devices[which.bit_length() - 1].uuid,)
        return HeldWorker(self.layout.hosts[bay.host].id, uuids)

    def free_thousandths(self) -> int:
        """Thousandths of devices that nobody holds, whole ones and parts."""
        whole = sum(free * bays.bit_count() for free, bays in enumerate(self.by_free))
        parts = sum(
            left for bay in bits(self.with_parts) for _, left in self.bays[bay].open_parts()
        )
        return whole * WHOLE_DEVICE + parts

    def free_among(self, bays: int) -> int:
        """Count the devices of some bays that are wholly free."""
        return sum(free * (found & bays).bit_count() for free, found in enumerate(self.by_free))

    def host_number(self, host_id: HostId) -> int | None:
        """The number of a host that is there."""
        return self.layout.numbers.get(host_id)

    def bays_of(self, host: int) -> Sequence[int]:
        """The numbers of a host's bays."""
        return self.layout.bays_of[host]

    def neighbours(self, number: int) -> int:
        """Bits of the bays in the rack of a bay, or of its host alone if it names no rack."""
        return self.layout.rack_of(self.bays[number].host)

    def choose(self, number: int, count: int) -> int:
        """Bits of so many free devices of a bay that are near each other."""
        bay = self.bays[number]
        return nearest_in(self.groups(number), bay.whole, count)

    def groups(self, number: int) -> Groups:
        """Which devices of a bay are near each other."""
        bay = self.bays[number]
        if bay.groups is None:
            bay.groups = groups_of(bay.devices)
        return bay.groups


def _state(bay: Bay) -> BayState:
    parts = tuple(sorted([left for _, left in bay.open_parts() if left])) if bay.parts else ()
    return BayState(bay.kind, bay.whole.bit_count(), parts)
