"""When a gang that does not fit now will fit, and where: what is held, freed in order of its end.

For `backfill`. Whole hosts are looked at, nothing is placed for good: devices found here are kept
until the gang starts, and may be chosen better then. What ends at one moment is free together, so
the names of claims decide nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .amounts import WHOLE_DEVICE
from .bits import bits
from .endings import Endings, Numbers, Seconds
from .inventory import Spot
from .ledger import Ledger, Member
from .shape import WorkerShape

_ANY_NUMBER = 1 << 30
"""So many workers that need no device fit anywhere, as far as devices go."""


class Gap(NamedTuple):
    """Where a gang will fit, and from when on."""

    start_s: float
    spots: tuple[Spot, ...]


class Keeping(NamedTuple):
    """Devices, cores and memory that nobody else may have now; shape and spot as of a worker."""

    worker: WorkerShape
    spot: Spot


@dataclass(slots=True)
class _Bundles:
    """Cores and memory by host: what is free now, and what of the rest comes back when.

    Attributes:
        host: Of each bundle that somebody holds.
        ends: When it comes back.
    """

    host: Numbers
    ends: Seconds
    cpu: Numbers
    memory: Numbers


class Outlook:
    """What becomes free when, less what earlier reservations count on.

    Args:
        ledger: The books.
        endings: Who holds what in them, where that is kept between passes.
    """

    def __init__(self, ledger: Ledger, endings: Endings | None = None) -> None:
        self._ledger, self._known = ledger, endings
        # What was kept of each bay before anybody looked ahead.
        self._kept: list[tuple[int, int]] = []
        self._cpu: dict[int, int] = {}
        self._memory: dict[int, int] = {}
        self._accepted: dict[WorkerShape, tuple[Numbers, Numbers]] = {}
        self._held: _Bundles | None = None

    @cached_property
    def _endings(self) -> Endings:
        """Who holds what: looked up once somebody looks ahead, for most often all fit now."""
        return Endings(self._ledger) if self._known is None else self._known

    @cached_property
    def _of_claims(self) -> Seconds:
        return self._endings.of_claims(self._ledger.now_s)

    @cached_property
    def _of_devices(self) -> Seconds:
        ends = self._endings.of_devices(self._of_claims)
        for number, devices in self._kept:
            self._keep_devices(ends, number, devices)
        return ends

    def _keep_devices(self, ends: Seconds, bay: int, devices: int) -> None:
        for position in bits(devices):
            ends[self._endings.first[bay] + position] = np.inf

    def gap_for(self, member: Member, count: int) -> Gap | None:
        """The earliest gap for so many workers of a claim; None if even the empty pool has none."""
        future = _Future(self, member.view.worker)
        ends_s = future.first_moment(count)
        if ends_s is None:
            return None
        # What is free now is free since ever.
        return Gap(max(ends_s, self._ledger.now_s), tuple(future.choose(count, ends_s)))

    def keep(self, member: Member, gap: Gap) -> tuple[Keeping, ...]:
        """Let later reservations do without a gap; returns what has to be kept of it now."""
        inventory, worker = self._ledger.inventory, member.view.worker
        kept: list[Keeping] = []
        for number in sorted({spot.bay for spot in gap.spots}):
            devices = 0
            for spot in gap.spots:
                devices |= spot.devices if spot.bay == number else 0
            if "_of_devices" in self.__dict__:
                self._keep_devices(self._of_devices, number, devices)
            else:
                self._kept.append((number, devices))
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
        spare_cpu, spare_memory = self.spare(gap.start_s)
        for host in sorted({inventory.bays[spot.bay].host for spot in gap.spots}):
            cpu = worker.cpu and max(0, inventory.cpu[host] - int(spare_cpu[host]))
            memory = worker.memory_bytes and max(
                0, inventory.memory[host] - int(spare_memory[host])
            )
            shape = WorkerShape(devices=0, cpu=cpu, memory_bytes=memory)
            yield Keeping(shape, Spot(inventory.bays_of(host)[0], 0))

    def spare(self, moment_s: float) -> tuple[Numbers, Numbers]:
        """Cores and memory of each host that are free by a moment and not counted on."""
        inventory, held = self._ledger.inventory, self._bundles()
        cpu, memory = np.array(inventory.cpu), np.array(inventory.memory)
        over = held.ends <= moment_s
        np.add.at(cpu, held.host[over], held.cpu[over])
        np.add.at(memory, held.host[over], held.memory[over])
        for host, amount in self._cpu.items():
            cpu[host] -= amount
            memory[host] -= self._memory[host]
        return cpu, memory

    def moments(self) -> list[float]:
        """When anything becomes free, minus infinity being now; in order."""
        ends = np.concatenate(([-np.inf], self._of_devices, self._bundles().ends))
        return [float(end) for end in np.unique(ends) if end < np.inf]

    def _bundles(self) -> _Bundles:
        if self._held is None:
            rows = list(self._endings.bundles())
            columns = np.array(rows, dtype=np.int64).reshape(len(rows), 4).T
            row, host, cpu, memory = columns
            self._held = _Bundles(host, self._of_claims[row], cpu, memory)
        return self._held

    def devices(self, shape: WorkerShape) -> tuple[Numbers, Numbers]:
        """The devices that a shape accepts, free or not, and the bays where they are."""
        found = self._accepted.get(shape)
        if found is None:
            bays = self._ledger.inventory.bays
            accepted = self._ledger.inventory.accepting(shape)
            is_accepted = _as_column(accepted, len(bays))
            devices = np.flatnonzero(is_accepted[self._endings.bay_of])
            found = self._accepted[shape] = devices, np.flatnonzero(is_accepted)
        return found

    def ends(self, devices: Numbers) -> Seconds:
        """When these devices can be leased."""
        return self._of_devices[devices]

    @property
    def ledger(self) -> Ledger:
        """The books."""
        return self._ledger

    @property
    def endings(self) -> Endings:
        """Who holds what in them."""
        return self._endings


@dataclass(slots=True)
class _Future:
    """The pool as one shape will see it: how many workers fit on each bay at a moment."""

    outlook: Outlook
    shape: WorkerShape
    _devices: Numbers = field(init=False)
    _bays: Numbers = field(init=False)
    _ends: Seconds = field(init=False)

    def __post_init__(self) -> None:
        self._devices, self._bays = self.outlook.devices(self.shape)
        self._ends = self.outlook.ends(self._devices)

    def first_moment(self, count: int) -> float | None:
        """When so many workers fit for the first time; minus infinity if they do now."""
        shape = self.shape
        if shape.cpu or shape.memory_bytes or not (shape.share or shape.devices == 1):
            return _first_of(self.outlook.moments(), lambda at_s: self.rooms(at_s).sum() >= count)
        # Room grows device by device: the one that makes it enough says when.
        lacking = -(-count // self._each_device())
        if lacking > len(self._ends):
            return None
        moment_s = float(np.partition(self._ends, lacking - 1)[lacking - 1])
        return moment_s if moment_s < np.inf else None

    def _each_device(self) -> int:
        return WHOLE_DEVICE // self.shape.share if self.shape.share else 1

    def rooms(self, moment_s: float) -> Numbers:
        """How many workers fit on each bay at a moment."""
        outlook, shape = self.outlook, self.shape
        bays = outlook.ledger.inventory.bays
        of_devices = outlook.endings.bay_of[self._devices[self._ends <= moment_s]]
        free = np.bincount(of_devices, minlength=len(bays))
        if shape.share or shape.devices:
            rooms = free * self._each_device() // (shape.devices or 1)
        else:
            rooms = np.zeros(len(bays), dtype=np.int64)
            rooms[self._bays] = _ANY_NUMBER
        if shape.cpu or shape.memory_bytes:
            host_of = np.array([bay.host for bay in bays], dtype=np.int64)
            cpu, memory = outlook.spare(moment_s)
            for each, spare in ((shape.cpu, cpu), (shape.memory_bytes, memory)):
                if each:
                    rooms = np.minimum(rooms, np.maximum(spare[host_of] // each, 0))
        return rooms.astype(np.int64)

    def choose(self, count: int, moment_s: float) -> Iterator[Spot]:
        """Spots for so many workers that fit at a moment, on as few hosts as can be."""
        rooms = self.rooms(moment_s)
        enough = np.flatnonzero(rooms >= count)
        if len(enough):
            yield from self._spots(int(enough[np.argmin(rooms[enough])]), count, moment_s)
            return
        for bay in np.argsort(-rooms, kind="stable"):
            here = min(int(rooms[bay]), count)
            yield from self._spots(int(bay), here, moment_s)
            count -= here
            if not count:
                return

    def _spots(self, bay: int, count: int, moment_s: float) -> Iterator[Spot]:
        first, shape = self.outlook.endings.first[bay], self.shape
        here = self._devices[self._ends <= moment_s] - first
        size = len(self.outlook.ledger.inventory.bays[bay].devices)
        free = [1 << int(position) for position in here[(here >= 0) & (here < size)]]
        if shape.share:
            each = self._each_device()
            yield from (Spot(bay, free[at // each], shape.share) for at in range(count))
            return
        for at in range(count):
            mine = free[at * shape.devices : (at + 1) * shape.devices]
            yield Spot(bay, sum(mine))


def _first_of(moments: list[float], is_enough: Callable[[float], bool]) -> float | None:
    """The first moment at which there is enough, and from which on there is."""
    low, high = 0, len(moments)
    while low < high:
        middle = (low + high) // 2
        if is_enough(moments[middle]):
            high = middle
        else:
            low = middle + 1
    return moments[low] if low < len(moments) else None


def _as_column(number: int, size: int) -> npt.NDArray[np.bool_]:
    """Which of so many bits of a number are set."""
    packed = np.frombuffer(number.to_bytes(-(-size // 8), "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=size, bitorder="little").astype(np.bool_)
