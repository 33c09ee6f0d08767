"""When a gang that does not fit now will fit, and where: what is held, freed in order of its end.

For `backfill`. Whole hosts are looked at, nothing is placed for good: devices found here are kept
until the gang starts, and may be chosen better then.
"""

from collections.abc import Iterator
from typing import NamedTuple

from jupyter_gpupool.pool.ids import ClaimId

from .amounts import WHOLE_DEVICE
from .bits import bits, first
from .inventory import Spot
from .ledger import Ledger, Member
from .remaining import will_have_ended_s
from .shape import WorkerShape


class Gap(NamedTuple):
    """Where a gang will fit, and from when on."""

    start_s: float
    spots: tuple[Spot, ...]


class Keeping(NamedTuple):
    """Devices, cores and memory that nobody else may have now; shape and spot as of a worker."""

    worker: WorkerShape
    spot: Spot


class Outlook:
    """What becomes free when, less what earlier reservations count on."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._ends = sorted(self._endings())
        self._promised: dict[int, int] = {}
        self._cpu: dict[int, int] = {}
        self._memory: dict[int, int] = {}

    def _endings(self) -> Iterator[tuple[float, ClaimId]]:
        now_s = self._ledger.now_s
        for claim_id, member in self._ledger.members.items():
            if member.spots or member.promised:
                lent_s = member.view.lent_until_s
                ends_s = will_have_ended_s(member.view, now_s)
                # Whoever was lent a gap has to leave it in time.
                yield (ends_s if lent_s is None else min(ends_s, max(now_s, lent_s))), claim_id

    def gap_for(self, member: Member, count: int) -> Gap | None:
        """The earliest gap for so many workers of a claim; None if even the empty pool has none."""
        future = _Future(self._ledger, member.view.worker, self._promised, self._cpu, self._memory)
        if spots := future.choose(count):
            return Gap(self._ledger.now_s, spots)
        for ends_s, claim_id in self._ends:
            other = self._ledger.members[claim_id]
            for spot in (*other.spots, *other.promised):
                future.free(other.view.worker, spot)
            if spots := future.choose(count):
                return Gap(ends_s, spots)
        return None

    def keep(self, member: Member, gap: Gap) -> tuple[Keeping, ...]:
        """Let later reservations do without a gap; returns what has to be kept of it now."""
        inventory, worker = self._ledger.inventory, member.view.worker
        kept: list[Keeping] = []
        for number in sorted({spot.bay for spot in gap.spots}):
            devices = 0
            for spot in gap.spots:
                devices |= spot.devices if spot.bay == number else 0
            self._promised[number] = self._promised.get(number, 0) | devices
            now = inventory.bays[number].whole & devices
            if now:
                kept.append(Keeping(WorkerShape(devices=now.bit_count()), Spot(number, now)))
        for host in sorted({inventory.bays[spot.bay].host for spot in gap.spots}):
            count = sum(inventory.bays[spot.bay].host == host for spot in gap.spots)
            self._cpu[host] = self._cpu.get(host, 0) + count * worker.cpu
            self._memory[host] = self._memory.get(host, 0) + count * worker.memory_bytes
        return (*kept, *self._unspared(gap, worker))

    def _unspared(self, gap: Gap, worker: WorkerShape) -> Iterator[Keeping]:
        """Cores and memory that must not be given away now, for too little is freed until then."""
        if not (worker.cpu or worker.memory_bytes):
            return
        inventory = self._ledger.inventory
        future = _Future(self._ledger, worker, {}, self._cpu, self._memory)
        for ends_s, claim_id in self._ends:
            if ends_s <= gap.start_s:
                other = self._ledger.members[claim_id]
                for spot in (*other.spots, *other.promised):
                    future.free(other.view.worker, spot)
        for host in sorted({inventory.bays[spot.bay].host for spot in gap.spots}):
            spare_cpu, spare_memory = future.spare(host)
            cpu = worker.cpu and max(0, inventory.cpu[host] - spare_cpu)
            memory = worker.memory_bytes and max(0, inventory.memory[host] - spare_memory)
            shape = WorkerShape(devices=0, cpu=cpu, memory_bytes=memory)
            yield Keeping(shape, Spot(inventory.bays_of(host)[0], 0))


class _Future:
    """The pool as one shape will see it: how many workers fit on each bay, as claims end."""

    def __init__(
        self,
        ledger: Ledger,
        shape: WorkerShape,
        promised: dict[int, int],
        cpu: dict[int, int],
        memory: dict[int, int],
    ) -> None:
        self._inventory = ledger.inventory
        self._shape = shape
        self._accepted = self._inventory.accepting(shape)
        self._promised = promised
        self._cpu = {host: -amount for host, amount in cpu.items()}
        self._memory = {host: -amount for host, amount in memory.items()}
        self._freed: dict[int, int] = {}
        self._parts: dict[tuple[int, int], int] = {}
        self._rooms = {bay: room for bay in bits(self._accepted) if (room := self._room(bay)) > 0}
        self._total = sum(self._rooms.values())

    def free(self, worker: WorkerShape, spot: Spot) -> None:
        """Let a worker of another claim be gone."""
        bay = self._inventory.bays[spot.bay]
        if spot.share:
            self._free_part(spot)
        elif spot.devices:
            self._open(spot.bay, spot.devices)
        self._cpu[bay.host] = self._cpu.get(bay.host, 0) + worker.cpu
        self._memory[bay.host] = self._memory.get(bay.host, 0) + worker.memory_bytes
        counts = self._shape.cpu or self._shape.memory_bytes
        for number in self._inventory.bays_of(bay.host) if counts else (spot.bay,):
            if self._accepted >> number & 1:
                self._count(number)

    def _free_part(self, spot: Spot) -> None:
        bay = self._inventory.bays[spot.bay]
        for position in bits(spot.devices):
            at = (spot.bay, position)
            left = self._parts.get(at, bay.parts.get(position, 0)) + spot.share
            self._parts[at] = left
            if left >= WHOLE_DEVICE:
                self._open(spot.bay, 1 << position)

    def _open(self, number: int, devices: int) -> None:
        views = self._inventory.bays[number].devices
        for position in bits(devices):
            if views[position].may_be_leased:
                self._freed[number] = self._freed.get(number, 0) | 1 << position

    def _count(self, number: int) -> None:
        before, after = self._rooms.get(number, 0), max(0, self._room(number))
        self._total += after - before
        self._rooms[number] = after

    def _devices(self, number: int) -> int:
        whole = self._inventory.bays[number].whole | self._freed.get(number, 0)
        return whole & ~self._promised.get(number, 0)

    def _room(self, number: int) -> int:
        shape, free = self._shape, self._devices(number).bit_count()
        if shape.share:
            room = free * (WHOLE_DEVICE // shape.share)
        elif shape.devices:
            room = free // shape.devices
        else:
            room = 1 << 30
        host = self._inventory.bays[number].host
        cpu, memory = self.spare(host)
        if shape.cpu:
            room = min(room, cpu // shape.cpu)
        if shape.memory_bytes:
            room = min(room, memory // shape.memory_bytes)
        return room

    def spare(self, host: int) -> tuple[int, int]:
        """Cores and memory of a host that are free by now."""
        cpu = self._inventory.cpu[host] + self._cpu.get(host, 0)
        return cpu, self._inventory.memory[host] + self._memory.get(host, 0)

    def choose(self, count: int) -> tuple[Spot, ...]:
        """Spots for so many workers on as few hosts as can be, or none if they do not fit."""
        if self._total < count:
            return ()
        one = [(room, bay) for bay, room in self._rooms.items() if room >= count]
        if one:
            return tuple(self._spots(min(one)[1], count))
        spots: list[Spot] = []
        for room, bay in sorted((-room, bay) for bay, room in self._rooms.items() if room):
            spots += self._spots(bay, min(-room, count - len(spots)))
            if len(spots) == count:
                break
        return tuple(spots)

    def _spots(self, number: int, count: int) -> Iterator[Spot]:
        free, shape = self._devices(number), self._shape
        if shape.share:
            each = WHOLE_DEVICE // shape.share
            for at, position in enumerate(bits(first(free, -(-count // each)))):
                for _ in range(min(each, count - at * each)):
                    yield Spot(number, 1 << position, shape.share)
            return
        for _ in range(count):
            devices = first(free, shape.devices)
            free &= ~devices
            yield Spot(number, devices)
