"""How much of a host's free devices is of no use to the workers that are expected.

The measure of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
Fragmentation Gradient Descent" (USENIX ATC 2023, section 3): what the next worker, drawn from the
workload, cannot use on average. A worker of whole devices cannot use parts; one of a part cannot
use smaller ones; where it does not fit at all, nothing is of use to it. All numbers are whole:
thousandths of devices times the weights of the workload.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from .amounts import WHOLE_DEVICE
from .bays import Kind
from .workload import Demand, Workload


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


class Worth(NamedTuple):
    """What free devices of one kind are worth beside so many cores and so much memory.

    Attributes:
        unfit: Weight of all for whom so many whole devices are of no use, by their number; the last
            is for all larger numbers.
        never: Weight of all for whom parts are of no use, however large.
        shares: The parts that are wanted and fit, smallest first.
        wanted: Weight of the parts wanted from the first, the second, ... of them on.
    """

    unfit: tuple[int, ...]
    never: int
    shares: tuple[int, ...]
    wanted: tuple[int, ...]

    def of_whole(self, count: int) -> int:
        """Weighted thousandths of so many whole devices that are of no use."""
        return count * WHOLE_DEVICE * self.unfit[min(count, len(self.unfit) - 1)]

    def of_part(self, left: int) -> int:
        """Weighted thousandths that are of no use of a device of which so much is left."""
        return left * (self.never + self.wanted[bisect_right(self.shares, left)])

    def of_bay(self, bay: BayState) -> int:
        """Weighted thousandths of a bay that are of no use."""
        return self.of_whole(bay.whole) + sum(map(self.of_part, bay.parts))


class Fragmentation:
    """The free devices of hosts measured by one workload, with a memory of what was measured.

    Args:
        workload: Who is expected.
        kinds: The kinds of bays, by their numbers.
    """

    def __init__(self, workload: Workload, kinds: Sequence[Kind]) -> None:
        self.kinds = tuple(kinds)
        self.total_weight = sum(demand.weight for demand in workload)
        self._accepted = [[d for d in workload if kind.accepts(d.shape)] for kind in kinds]
        # Only who fits matters: amounts between those of two demands are the same.
        self._cpus = sorted({0, *(demand.shape.cpu for demand in workload)})
        self._memories = sorted({0, *(demand.shape.memory_bytes for demand in workload)})
        self._known: dict[tuple[int, int, int], Worth] = {}

    def unusable(self, state: HostState) -> int:
        """Weighted thousandths of a host's free devices that the expected worker cannot use.

        Divided by `total_weight` it is the paper's F_n, in thousandths of a device.
        """
        return sum(self.worth(bay.kind, state.cpu, state.memory).of_bay(bay) for bay in state.bays)

    def worth(self, kind: int, cpu: int, memory: int) -> Worth:
        """What devices of a kind are worth beside cores and memory; none of them negative."""
        cores = bisect_right(self._cpus, cpu)
        space = bisect_right(self._memories, memory)
        found = self._known.get((kind, cores, space))
        if found is None:
            most, most_bytes = self._cpus[cores - 1], self._memories[space - 1]
            fitting = [
                demand
                for demand in self._accepted[kind]
                if demand.shape.cpu <= most and demand.shape.memory_bytes <= most_bytes
            ]
            found = self._known[kind, cores, space] = _worth(fitting, self.total_weight)
        return found


@lru_cache(maxsize=8)
def measured_by(workload: Workload, kinds: tuple[Kind, ...]) -> Fragmentation:
    """The measure of a workload on bays of these kinds: one pass goes on with another's memory."""
    return Fragmentation(workload, kinds)


def _worth(fitting: Sequence[Demand], total_weight: int) -> Worth:
    """Sum up once for whom what is of use."""
    whole = [demand for demand in fitting if demand.shape.devices]
    parts = sorted((d for d in fitting if d.shape.share), key=lambda demand: demand.shape.share)
    of_parts = sum(demand.weight for demand in parts)
    most = max((demand.shape.devices for demand in whole), default=0)
    unfit = [total_weight - of_parts] * (most + 1)
    for demand in whole:
        for count in range(demand.shape.devices, most + 1):
            unfit[count] -= demand.weight
    return Worth(
        unfit=tuple(unfit),
        never=total_weight - of_parts,
        shares=tuple(demand.shape.share for demand in parts),
        wanted=tuple(accumulate((-demand.weight for demand in parts), initial=of_parts)),
    )
