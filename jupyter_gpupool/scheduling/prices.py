"""What it costs the workers that are expected if a worker goes to a certain bay.

The rule of Weng et al., ATC'23 (section 4): a worker goes where it adds least to what the next one
cannot use. A cost depends on nothing but the worker's shape and the state of a host, so it is
worked out once and remembered from pass to pass.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from .amounts import WHOLE_DEVICE
from .fragmentation import BayState, Fragmentation, HostState
from .shape import WorkerShape

Key: TypeAlias = tuple[HostState, int]
"""The state of a host, and the place of a bay among its bays."""

_MOST_REMEMBERED = 20_000


class Cost(NamedTuple):
    """What it costs to put a worker into a bay; the least is best.

    Attributes:
        unusable: Weighted thousandths that become of no use; negative if some become useful.
        opens: It takes devices that are wholly free.
        free: Devices wholly free in the bay: fuller ones first.
        left: Free thousandths of the device of which it gets a part, else those of a whole one.
    """

    unusable: int
    opens: bool
    free: int
    left: int


_UNKNOWN = Cost(0, opens=False, free=-1, left=-1)
"""Stands for a cost not worked out yet, for None is one: it does not fit."""


class Prices:
    """The costs of a worker of one shape.

    Args:
        measure: By what they are measured.
        shape: Its shape, without what concerns single hosts.
        shared: Whether it may get a part of a device of which another is held already.
    """

    def __init__(self, measure: Fragmentation, shape: WorkerShape, *, shared: bool) -> None:
        self._measure = measure
        self._shape = shape
        self._shared = shared
        self._kinds = {n for n, kind in enumerate(measure.kinds) if kind.accepts(shape)}
        self._known: dict[Key, Cost | None] = {}

    def __call__(self, key: Key) -> Cost | None:
        """The least cost of the worker in a bay, None if it does not fit there."""
        cost = self._known.get(key, _UNKNOWN)
        if cost is _UNKNOWN:
            cost = self._worked_out(*key)
            if len(self._known) > _MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = cost
        return cost

    def _worked_out(self, state: HostState, place: int) -> Cost | None:
        shape, bay = self._shape, state.bays[place]
        cpu, memory = state.cpu - shape.cpu, state.memory - shape.memory_bytes
        if cpu < 0 or memory < 0 or bay.kind not in self._kinds:
            return None
        options = self._parts(bay, cpu, memory) if shape.share else self._whole(bay, cpu, memory)
        best = min(options, default=None)
        if best is None:
            return None
        return best._replace(unusable=best.unusable + self._beside(state, cpu, memory))

    def _whole(self, bay: BayState, cpu: int, memory: int) -> Iterator[Cost]:
        devices = self._shape.devices
        if bay.whole >= devices:
            worth = self._measure.worth(bay.kind, cpu, memory)
            more = worth.of_whole(bay.whole - devices) - worth.of_whole(bay.whole)
            yield Cost(more, bool(devices), bay.whole, WHOLE_DEVICE)

    def _parts(self, bay: BayState, cpu: int, memory: int) -> Iterator[Cost]:
        share, worth = self._shape.share, self._measure.worth(bay.kind, cpu, memory)
        if bay.whole:
            more = worth.of_whole(bay.whole - 1) - worth.of_whole(bay.whole)
            yield Cost(more + worth.of_part(WHOLE_DEVICE - share), True, bay.whole, WHOLE_DEVICE)
        for left in sorted(set(bay.parts)) if self._shared else ():
            if left >= share:
                more = worth.of_part(left - share) - worth.of_part(left)
                yield Cost(more, False, bay.whole, left)

    def _beside(self, state: HostState, cpu: int, memory: int) -> int:
        """What becomes of no use because cores and memory go, before any device does."""
        more, measure = 0, self._measure
        for bay in state.bays:
            before = measure.worth(bay.kind, state.cpu, state.memory)
            after = measure.worth(bay.kind, cpu, memory)
            if after is not before:
                more += after.of_bay(bay) - before.of_bay(bay)
        return more


@lru_cache(maxsize=1024)
def prices_of(measure: Fragmentation, shape: WorkerShape, shared: bool) -> Prices:  # noqa: FBT001 - half of a key
    """The costs of a shape by a measure: one pass goes on with another's memory."""
    return Prices(measure, shape, shared=shared)
