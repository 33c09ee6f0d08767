"""The pool as one shape will see it: how many workers fit on each bay at a moment, and where.

Asked by `outlook`, which knows what becomes free when.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from .amounts import WHOLE_DEVICE
from .inventory import Spot
from .shape import WorkerShape

if TYPE_CHECKING:
    from .endings import Numbers
    from .outlook import Outlook

_ANY_NUMBER = 1 << 30
"""So many workers that need no device fit anywhere, as far as devices go."""


class GapSearch:
    """Looks for the first gap for workers of one shape."""

    def __init__(self, outlook: "Outlook", shape: WorkerShape) -> None:
        self._outlook, self._shape = outlook, shape
        self._devices, self._ends = outlook.coming_back(shape, soon=True)
        is_alone = shape.share or shape.devices == 1
        # Nothing but devices counts for it, one by one.
        self._is_one_by_one = is_alone and not (shape.cpu or shape.memory_bytes)

    def first_moment(self, count: int) -> float | None:
        """When so many workers fit for the first time; minus infinity if they do now."""
        if not self._is_one_by_one:
            self._see_all()
            return _first_of(self._outlook.moments(), lambda at_s: self._room(at_s) >= count)
        # Room grows device by device: the one that makes it enough says when.
        lacking = -(-count // self._each_device())
        if lacking > len(self._ends):
            self._see_all()
        if lacking > len(self._ends):
            return None
        return float(np.partition(self._ends, lacking - 1)[lacking - 1])

    def _see_all(self) -> None:
        self._devices, self._ends = self._outlook.coming_back(self._shape, soon=False)

    def _each_device(self) -> int:
        return WHOLE_DEVICE // self._shape.share if self._shape.share else 1

    def _room(self, moment_s: float) -> int:
        return int(self._rooms(self._free(moment_s), moment_s).sum())

    def _free(self, moment_s: float) -> "Numbers":
        """The devices that are free at a moment, in order."""
        return self._devices[self._ends <= moment_s]

    def _rooms(self, free: "Numbers", moment_s: float) -> "Numbers":
        """How many workers fit on each bay at a moment."""
        outlook, shape = self._outlook, self._shape
        bays = outlook.ledger.inventory.bays
        if shape.share or shape.devices:
            in_each = np.bincount(outlook.endings.bay_of[free], minlength=len(bays))
            rooms = in_each * self._each_device() // (shape.devices or 1)
        else:
            rooms = np.where(outlook.is_accepted(shape), _ANY_NUMBER, 0)
        if shape.cpu or shape.memory_bytes:
            host_of = np.array([bay.host for bay in bays], dtype=np.int64)
            cpu, memory = outlook.spare(moment_s)
            for each, spare in ((shape.cpu, cpu), (shape.memory_bytes, memory)):
                if each:
                    rooms = np.minimum(rooms, np.maximum(spare[host_of] // each, 0))
        return rooms.astype(np.int64)

    def choose(self, count: int, moment_s: float) -> Iterator[Spot]:
        """Spots for so many workers that fit at a moment, on as few hosts as can be."""
        free = self._free(moment_s)
        rooms = self._rooms(free, moment_s)
        bays = _fewest(rooms, count)
        if self._is_one_by_one:
            yield from self._one_by_one(bays, count, free)
            return
        for bay in bays.tolist():
            here = min(int(rooms[bay]), count)
            yield from self._spots(bay, here, free)
            count -= here

    def _one_by_one(self, bays: "Numbers", count: int, free: "Numbers") -> Iterator[Spot]:
        """Spots on some bays in their order, each on one device and all of it for use."""
        endings, share = self._outlook.endings, self._shape.share
        turn = np.full(len(self._outlook.ledger.inventory.bays), len(bays))
        turn[bays] = np.arange(len(bays))
        turns = turn[endings.bay_of[free]]
        here = np.flatnonzero(turns < len(bays))
        devices = free[here[np.argsort(turns[here], kind="stable")]]
        devices = np.repeat(devices, self._each_device())[:count]
        places = zip(endings.bay_of[devices].tolist(), devices.tolist(), strict=True)
        return (Spot(bay, 1 << device - endings.first[bay], share) for bay, device in places)

    def _spots(self, bay: int, count: int, free: "Numbers") -> Iterator[Spot]:
        """Spots for so many workers on a bay, given what is free everywhere."""
        first, shape = self._outlook.endings.first[bay], self._shape
        end = first + len(self._outlook.ledger.inventory.bays[bay].devices)
        here = free[free.searchsorted(first) : free.searchsorted(end)]
        bits = [1 << device - first for device in here.tolist()]
        if shape.share:
            each = self._each_device()
            yield from (Spot(bay, bits[at // each], shape.share) for at in range(count))
            return
        for at in range(count):
            mine = bits[at * shape.devices : (at + 1) * shape.devices]
            yield Spot(bay, sum(mine))


def _fewest(rooms: "Numbers", count: int) -> "Numbers":
    """The bays with the most room that hold so many together, or the tightest that holds all."""
    enough = np.flatnonzero(rooms >= count)
    if len(enough):
        return enough[[np.argmin(rooms[enough])]]
    some = np.flatnonzero(rooms)
    some = some[np.argsort(-rooms[some], kind="stable")]
    return some[: int(np.cumsum(rooms[some]).searchsorted(count)) + 1]


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
