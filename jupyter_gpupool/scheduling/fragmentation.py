"""How much of a host's free devices is of no use to the workers that are expected.

The measure and the rule of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads
with Fragmentation Gradient Descent" (USENIX ATC 2023, sections 3 and 4): a worker goes where it
adds least to what the next one, drawn from the workload, cannot use. Everything is a whole number:
thousandths of devices times the weights of the workload.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

from .bays import Kind
from .shape import WHOLE, WorkerShape
from .workload import Workload

_MOST_REMEMBERED = 100_000
_MOST_SHAPES = 500

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class BayState(NamedTuple):
    """What is free in a bay.

    Attributes:
        kind: The number of its kind.
        whole: How many devices are wholly free.
        parts: Free thousandths of those held in part that have any left, smallest first.
    """

    kind: int
    whole: int
    parts: tuple[int, ...]


class HostState(NamedTuple):
    """What is free on a host: hosts in one state are the same to every worker."""

    cpu: int
    memory: int
    bays: tuple[BayState, ...]


Key: TypeAlias = tuple[HostState, int]
"""All that a worker's cost in a bay depends on: the state of its host, and its place there."""


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


class _Need(NamedTuple):
    weight: int
    devices: int
    share: int
    cpu: int
    memory: int


class Fragmentation:
    """The free devices of hosts measured by one workload, with a memory of what was measured.

    Args:
        workload: Who is expected.
        kinds: The kinds of bays, by their numbers.
    """

    def __init__(self, workload: Workload, kinds: Sequence[Kind]) -> None:
        self.workload = workload
        self.kinds = tuple(kinds)
        self.total_weight = sum(demand.weight for demand in workload)
        self._needs = [tuple(_needs(workload, kind)) for kind in kinds]
        self._refused = [self.total_weight - sum(need.weight for need in ns) for ns in self._needs]
        # Only whether the needs fit matters: amounts between two of them are the same.
        self._cpus = sorted({demand.shape.cpu for demand in workload})
        self._memories = sorted({demand.shape.memory_bytes for demand in workload})
        self._known: dict[tuple[BayState, int, int], int] = {}
        self._costs: dict[tuple[WorkerShape, bool], dict[Key, Cost | None]] = {}

    def unusable(self, state: HostState) -> int:
        """Weighted thousandths of a host's free devices that the expected worker cannot use.

        Divided by `total_weight` it is the paper's F_n, in thousandths of a device.
        """
        cpu = bisect_right(self._cpus, state.cpu)
        memory = bisect_right(self._memories, state.memory)
        known, amount = self._known, 0
        for bay in state.bays:
            key = (bay, cpu, memory)
            measured = known.get(key)
            if measured is None:
                measured = self._measured(bay, state.cpu, state.memory)
                remember(known, key, measured)
            amount += measured
        return amount

    def _measured(self, bay: BayState, cpu: int, memory: int) -> int:
        parts = sum(bay.parts)
        total = bay.whole * WHOLE + parts
        if not total:
            return 0
        amount = self._refused[bay.kind] * total
        for need in self._needs[bay.kind]:
            if need.cpu > cpu or need.memory > memory or need.devices > bay.whole:
                amount += need.weight * total
            elif need.devices:
                amount += need.weight * parts
            else:
                amount += need.weight * sum(part for part in bay.parts if part < need.share)
        return amount

    def known_costs(self, shape: WorkerShape, *, shared: bool) -> dict[Key, Cost | None]:
        """What is known of a plain shape's costs; whoever works out another one enters it."""
        if len(self._costs) > _MOST_SHAPES:
            self._costs.clear()
        return self._costs.setdefault((shape, shared), {})

    def cost(self, shape: WorkerShape, state: HostState, bay: int, *, shared: bool) -> Cost | None:
        """The least cost of a worker of a plain shape in a bay, None if it does not fit there.

        Args:
            shape: A plain one.
            state: Of its host.
            bay: Its place among the bays of that host.
            shared: Whether it may get a part of a device of which another is held already.
        """
        at = state.bays[bay]
        if shape.cpu > state.cpu or shape.memory_bytes > state.memory:
            return None
        if not self.kinds[at.kind].accepts(shape):
            return None
        options = _options(shape, at, shared=shared)
        return min((self._priced(shape, state, bay, after) for after in options), default=None)

    def _priced(
        self, shape: WorkerShape, state: HostState, bay: int, option: tuple[int, BayState]
    ) -> Cost:
        left, after = option
        host = HostState(
            state.cpu - shape.cpu,
            state.memory - shape.memory_bytes,
            (*state.bays[:bay], after, *state.bays[bay + 1 :]),
        )
        whole = state.bays[bay].whole
        opens = after.whole < whole
        return Cost(self.unusable(host) - self.unusable(state), opens, whole, left)


@lru_cache(maxsize=8)
def measured_by(workload: Workload, kinds: tuple[Kind, ...]) -> Fragmentation:
    """The measure of a workload on bays of these kinds: one pass goes on with another's memory."""
    return Fragmentation(workload, kinds)


def remember(memory: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Keep what was worked out. Nobody may count on finding it again: a full memory is emptied."""
    if len(memory) > _MOST_REMEMBERED:
        memory.clear()
    memory[key] = value


def _options(shape: WorkerShape, bay: BayState, *, shared: bool) -> Iterator[tuple[int, BayState]]:
    """The ways to put a worker into a bay: thousandths free before, and the bay after."""
    if not shape.share:
        if bay.whole >= shape.devices:
            yield WHOLE, bay._replace(whole=bay.whole - shape.devices)
        return
    if bay.whole:
        parts = _with(bay.parts, WHOLE - shape.share)
        yield WHOLE, BayState(bay.kind, bay.whole - 1, parts)
    for left in sorted(set(bay.parts)) if shared else ():
        if left >= shape.share:
            others = list(bay.parts)
            others.remove(left)
            yield left, bay._replace(parts=_with(others, left - shape.share))


def _with(parts: Sequence[int], more: int) -> tuple[int, ...]:
    return tuple(sorted((*parts, more))) if more else tuple(parts)


def _needs(workload: Workload, kind: Kind) -> Iterator[_Need]:
    for shape, weight in workload:
        if kind.accepts(shape):
            yield _Need(weight, shape.devices, shape.share, shape.cpu, shape.memory_bytes)
