"""What is free, host by host, and where workers of a shape would go.

Hosts are bits of whole numbers, one number for each count of free devices: asking which hosts have
exactly three free devices of a fitting kind is one `and`, at ten thousand devices as at ten. A
*bay* is the devices of one kind on one host.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jupyter_gpupool.pool.ids import DeviceUuid, HostId

from .bits import bits, lowest
from .shape import WHOLE, DeviceView, HeldWorker, HostShape, WorkerShape
from .topology import nearest

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


@dataclass(slots=True)
class Bay:
    """The devices of one kind on one host.

    Attributes:
        host: Its number.
        whole: Bits of devices that may be leased and that nobody holds.
        held: Bits of devices that somebody holds wholly.
        parts: Free thousandths of each device that is held in part, by its number.
        sharers: Who holds parts of it, by its number.
    """

    host: int
    devices: tuple[DeviceView, ...]
    whole: int = 0
    held: int = 0
    parts: dict[int, int] = field(default_factory=dict)
    sharers: dict[int, str] = field(default_factory=dict)


class Inventory:
    """Free devices, cores and memory of all hosts. Changed by `take` and `give`, its inverse."""

    def __init__(self, hosts: Iterable[HostShape]) -> None:
        self.hosts: tuple[HostShape, ...] = tuple(sorted(hosts, key=lambda host: host.id))
        self.bays: list[Bay] = []
        self.cpu = [host.cpu or UNCOUNTED for host in self.hosts]
        self.memory = [host.memory_bytes or UNCOUNTED for host in self.hosts]
        self.by_free: list[int] = [0]
        """Bits of bays that have exactly so many devices wholly free."""
        self.with_parts = 0
        """Bits of bays with a device that is held in part."""
        self._where: dict[DeviceUuid, tuple[int, int]] = {}
        self._bays_of: list[list[int]] = []
        self._host_numbers = {host.id: number for number, host in enumerate(self.hosts)}
        self._accepting: dict[WorkerShape, int] = {}
        self._racks: dict[str, int] = {}
        for number, host in enumerate(self.hosts):
            self._bays_of.append(list(self._add_bays(number, host)))
            here = sum(1 << bay for bay in self._bays_of[number])
            self._racks[host.rack] = self._racks.get(host.rack, 0) | here

    def _add_bays(self, number: int, host: HostShape) -> Iterator[int]:
        kinds: dict[tuple[str, int], list[DeviceView]] = {}
        for device in host.devices:
            kinds.setdefault((device.model, device.memory_bytes), []).append(device)
        for devices in kinds.values() or [[]]:
            bay = Bay(host=number, devices=tuple(devices))
            for position, device in enumerate(devices):
                # Should two hosts ever name the same device, only one of them may have it.
                if device.uuid not in self._where:
                    self._where[device.uuid] = (len(self.bays), position)
                    bay.whole |= device.may_be_leased << position
            self.bays.append(bay)
            self._count(len(self.bays) - 1, bay.whole.bit_count())
            yield len(self.bays) - 1

    # What fits where

    def accepting(self, shape: WorkerShape) -> int:
        """Bits of the bays whose devices and host a shape accepts, free or not."""
        found = self._accepting.get(shape)
        if found is None:
            found = 0
            for number, bay in enumerate(self.bays):
                found |= _accepts(shape, self.hosts[bay.host], bay) << number
            self._accepting[shape] = found
        return found

    def room(self, number: int, shape: WorkerShape) -> int:
        """How many workers of a shape fit in a bay now, parts of devices left aside."""
        bay = self.bays[number]
        most = bay.whole.bit_count() // shape.devices if shape.devices else UNCOUNTED
        if shape.cpu:
            most = min(most, self.cpu[bay.host] // shape.cpu)
        if shape.memory_bytes:
            most = min(most, self.memory[bay.host] // shape.memory_bytes)
        return most

    def devices_in(self, number: int, shape: WorkerShape) -> int:
        """How many workers of a shape would fit in a bay if it were empty."""
        bay, host = self.bays[number], self.hosts[self.bays[number].host]
        count = sum(device.may_be_leased for device in bay.devices)
        most = count // shape.devices if shape.devices else UNCOUNTED
        if shape.share:
            most = count * (WHOLE // shape.share)
        if shape.cpu and host.cpu:
            most = min(most, host.cpu // shape.cpu)
        if shape.memory_bytes and host.memory_bytes:
            most = min(most, host.memory_bytes // shape.memory_bytes)
        return most

    # Changing it

    def take(self, shape: WorkerShape, spot: Spot, sharer: str = "") -> None:
        """Hold what a worker holds.

        Raises:
            ValueError: If it is not free: that would lease a device twice.
        """
        bay = self.bays[spot.bay]
        partly = spot.share and lowest(spot.devices) in bay.parts
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
            if bay.held & spot.devices or any(p in bay.parts for p in bits(spot.devices)):
                return False
            bay.held |= spot.devices
            self._set_whole(spot.bay, bay.whole & ~spot.devices)
        self.cpu[bay.host] -= shape.cpu
        self.memory[bay.host] -= shape.memory_bytes
        return True

    def is_open(self, spot: Spot) -> bool:
        """Whether nothing outside the books keeps the devices of a spot from being leased."""
        bay = self.bays[spot.bay]
        return all(bay.devices[position].may_be_leased for position in bits(spot.devices))

    def give(self, shape: WorkerShape, spot: Spot) -> None:
        """Free what a worker held."""
        bay = self.bays[spot.bay]
        if spot.share:
            self._give_part(spot)
        elif spot.devices:
            bay.held &= ~spot.devices
            self._set_whole(spot.bay, bay.whole | self._leasable(bay, spot.devices))
        self.cpu[bay.host] += shape.cpu
        self.memory[bay.host] += shape.memory_bytes

    def _hold_part(self, spot: Spot, sharer: str) -> bool:
        bay, position = self.bays[spot.bay], lowest(spot.devices)
        left = bay.parts.get(position, WHOLE)
        if bay.held & spot.devices or left < spot.share:
            return False
        if position not in bay.parts:
            bay.sharers[position] = sharer
            self._set_whole(spot.bay, bay.whole & ~spot.devices)
        bay.parts[position] = left - spot.share
        self.with_parts |= 1 << spot.bay
        return True

    def _give_part(self, spot: Spot) -> None:
        bay, position = self.bays[spot.bay], lowest(spot.devices)
        left = bay.parts[position] + spot.share
        if left < WHOLE:
            bay.parts[position] = left
            return
        del bay.parts[position], bay.sharers[position]
        if not bay.parts:
            self.with_parts &= ~(1 << spot.bay)
        self._set_whole(spot.bay, bay.whole | self._leasable(bay, spot.devices))

    @staticmethod
    def _leasable(bay: Bay, devices: int) -> int:
        return sum(1 << p for p in bits(devices) if bay.devices[p].may_be_leased)

    def _set_whole(self, number: int, whole: int) -> None:
        bay = self.bays[number]
        self.by_free[bay.whole.bit_count()] ^= 1 << number
        bay.whole = whole
        self._count(number, whole.bit_count())

    def _count(self, number: int, free: int) -> None:
        while len(self.by_free) <= free:
            self.by_free.append(0)
        self.by_free[free] |= 1 << number

    # Between numbers and names

    def spot(self, worker: HeldWorker, shape: WorkerShape) -> Spot | None:
        """Where a held worker is; None if its host or a device of it is no longer there."""
        host = self._host_numbers.get(worker.host_id)
        if host is None:
            return None
        if not worker.devices:
            return Spot(self._bays_of[host][0], 0)
        found = [self._where.get(uuid) for uuid in worker.devices]
        places = [place for place in found if place is not None]
        if len(places) < len(found) or len({bay for bay, _ in places}) > 1:
            return None
        return Spot(places[0][0], sum(1 << position for _, position in places), shape.share)

    def named(self, spot: Spot) -> HeldWorker:
        """The host and devices of a spot."""
        bay = self.bays[spot.bay]
        uuids = tuple(bay.devices[position].uuid for position in bits(spot.devices))
        return HeldWorker(self.hosts[bay.host].id, uuids)

    def free_thousandths(self) -> int:
        """Thousandths of devices that nobody holds, whole ones and parts."""
        whole = sum(free * bays.bit_count() for free, bays in enumerate(self.by_free))
        parts = sum(sum(self.bays[bay].parts.values()) for bay in bits(self.with_parts))
        return whole * WHOLE + parts

    def host_number(self, host_id: HostId) -> int | None:
        """The number of a host that is there."""
        return self._host_numbers.get(host_id)

    def bays_of(self, host: int) -> Sequence[int]:
        """The numbers of a host's bays."""
        return self._bays_of[host]

    def neighbours(self, number: int) -> int:
        """Bits of the bays in the rack of a bay, or of its host alone if it names no rack."""
        host = self.bays[number].host
        rack = self.hosts[host].rack
        if not rack:
            return sum(1 << bay for bay in self._bays_of[host])
        return self._racks[rack]

    def choose(self, number: int, count: int) -> int:
        """Bits of so many free devices of a bay that are near each other."""
        bay = self.bays[number]
        return nearest(bay.devices, bay.whole, count)


def _accepts(shape: WorkerShape, host: HostShape, bay: Bay) -> bool:
    if not host.takes_more or host.id in shape.avoid or host.id in shape.barred:
        return False
    if not shape.labels <= host.labels:
        return False
    if not shape.devices and not shape.share:
        return True
    if not bay.devices:
        return False
    kind = bay.devices[0]
    return shape.model in kind.model.lower() and kind.memory_bytes >= shape.device_memory_bytes
