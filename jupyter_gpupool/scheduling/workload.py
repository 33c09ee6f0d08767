"""What kinds of workers a pool is expected to serve: by it the worth of a free device is measured.

Made once for a pass from the claims that hold or wait. Weights are whole numbers in coarse steps,
so that one more claim leaves the workload, and all that is remembered about it, mostly as it was.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from .shape import WorkerShape

Workload: TypeAlias = tuple["Demand", ...]

MOST_SHAPES = 64
"""Rarer shapes than these are left out: each one costs a step for every state of a host."""

_STEPS = 64


class Demand(NamedTuple):
    """A shape of workers, and how often it is met beside the others."""

    shape: WorkerShape
    weight: int


TYPICAL: Final[Workload] = tuple(Demand(WorkerShape(devices=n), 1) for n in (1, 2, 4, 8))
"""Whole devices by ones, twos, fours and eights. Part of every workload, for whoever asks next may
want them: without it, a pool in which only parts are held would split every device it has."""


def workload_of(workers: Iterable[tuple[WorkerShape, int]]) -> Workload:
    """Weigh the shapes of workers, given with their numbers; those without devices say nothing.

    Where a worker may not run just now, and whether it wants company, does not matter to others.
    """
    counts: Counter[WorkerShape] = Counter()
    for shape, count in workers:
        counts[shape] += count
    plain: Counter[WorkerShape] = Counter()
    for shape, count in counts.items():
        if count and (shape.devices or shape.share):
            plain[plainly(shape)] += count
    return _weighed(plain)


def plainly(shape: WorkerShape) -> WorkerShape:
    """A shape without what only concerns where one claim's workers go."""
    if not shape.avoid and not shape.barred and not shape.spread:
        return shape
    return shape._replace(avoid=frozenset(), barred=frozenset(), spread=False)


def _weighed(counts: Mapping[WorkerShape, int]) -> Workload:
    most = sorted(counts.items(), key=lambda item: (-item[1], _order(item[0])))[:MOST_SHAPES]
    total = sum(count for _, count in most)
    met = (Demand(shape, _step(count, total)) for shape, count in most)
    return (*sorted(met, key=lambda demand: _order(demand.shape)), *TYPICAL)


def _step(count: int, total: int) -> int:
    """The power of two next to a shape's part of the whole."""
    return 1 << (count * _STEPS // total).bit_length()


def _order(shape: WorkerShape) -> tuple[object, ...]:
    return (shape[:6], tuple(sorted(shape.labels)))
