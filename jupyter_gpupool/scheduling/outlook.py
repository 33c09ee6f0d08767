"""When a gang that does not fit now will fit, and where: what is held, freed in order of its end.

For `backfill`. Whole hosts are looked at, nothing is placed for good: devices found here are kept
until the gang starts, and may be chosen better then. What ends at one moment is free together, so
the names of claims decide nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .bits import bits
from .endings import Endings, Numbers, Seconds
from .gap_search import GapSearch
from .inventory import Spot
from .ledger import Ledger, Member
from .shape import WorkerShape

_SOON = 1024
"""So many devices that are not free are looked at first: hardly any gang has to wait for more."""


Flags: TypeAlias = npt.NDArray[np.bool_]


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
        self._accepted: dict[WorkerShape, Flags] = {}
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
        search = GapSearch(self, member.view.worker)
        ends_s = search.first_moment(count)
        if ends_s is None:
            return None
        # What is free now is free since ever.
        return Gap(max(ends_s, self._ledger.now_s), tuple(search.choose(count, ends_s)))

    def keep(self, member: Member, gap: Gap) -> tuple[Keeping, ...]:
        """Let later reservations do without a gap; returns what has to be kept of it now."""
        inventory, worker = self._ledger.inventory, member.view.worker
        kept: list[Keeping] = []
        for number, devices in sorted(_by_bay(gap.spots).items()):
            if "_of_devices" in self.__dict__:
                self._keep_devices(self._of_devices, number, devices)
            else:
                self._kept.append((number, devices))
            now = inventory.bays[number].whole & devices
            if now:
                kept.append(Keeping(WorkerShape(devices=now.bit_count()), Spot(number, now)))
        if not (worker.cpu or worker.memory_bytes):
            return tuple(kept)
        for spot in gap.spots:
            host = inventory.bays[spot.bay].host
            self._cpu[host] = self._cpu.get(host, 0) + worker.cpu
            self._memory[host] = self._memory.get(host, 0) + worker.memory_bytes
        return (*kept, *self._unspared(gap, worker))

    def _unspared(self, gap: Gap, worker: WorkerShape) -> Iterator[Keeping]:
        """Cores and memory that must not be given away now, for too little is freed until then."""
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

    def is_accepted(self, shape: WorkerShape) -> Flags:
        """Of each bay whether a shape may go there, free or not."""
        found = self._accepted.get(shape)
        if found is None:
            inventory = self._ledger.inventory
            found = _as_column(inventory.accepting(shape), len(inventory.bays))
            self._accepted[shape] = found
        return found

    @cached_property
    def _soon(self) -> Numbers:
        """The devices that come back first, and all that come back with the last of them."""
        ends = self._of_devices
        many = int(np.count_nonzero(ends == -np.inf)) + _SOON
        if many >= len(ends):
            return np.arange(len(ends))
        return np.flatnonzero(ends <= np.partition(ends, many)[many])

    def coming_back(self, shape: WorkerShape, *, soon: bool) -> tuple[Numbers, Seconds]:
        """Devices that a shape accepts, and when they can be leased.

        Args:
            shape: Of the workers that look for them.
            soon: The first ones will do: all those that can be leased until some moment.
        """
        if not soon:
            is_of_use = self.is_accepted(shape)[self._endings.bay_of]
            is_of_use &= self._of_devices < np.inf
            devices = np.flatnonzero(is_of_use)
            return devices, self._of_devices[devices]
        # What was kept since then comes back no more.
        ends = self._of_devices[self._soon]
        is_of_use = self.is_accepted(shape)[self._bay_of_soon] & (ends < np.inf)
        return self._soon[is_of_use], ends[is_of_use]

    @cached_property
    def _bay_of_soon(self) -> Numbers:
        return self._endings.bay_of[self._soon]

    @property
    def ledger(self) -> Ledger:
        """The books."""
        return self._ledger

    @property
    def endings(self) -> Endings:
        """Who holds what in them."""
        return self._endings


def _by_bay(spots: Iterable[Spot]) -> dict[int, int]:
    """The devices of these spots in each of their bays."""
    found: dict[int, int] = {}
    for spot in spots:
        found[spot.bay] = found.get(spot.bay, 0) | spot.devices
    return found


def _as_column(number: int, size: int) -> Flags:
    """Which of so many bits of a number are set."""
    packed = np.frombuffer(number.to_bytes(-(-size // 8), "little"), dtype=np.uint8)
    return np.unpackbits(packed, count=size, bitorder="little").astype(np.bool_)
