"""One level of the tree: a parent's amount among its children, resource by resource.

Called by `tree_shares` for each parent; `shares` divides a single resource.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jupyter_gpupool.scheduling.amounts import Amount, Kinds, whole_unit
from jupyter_gpupool.scheduling.queues import Queue
from jupyter_gpupool.scheduling.shares import Demand, divide


class Level(NamedTuple):
    """What a parent has, and its children with what they can make use of and their u'."""

    amount: Amount
    queues: Sequence[Queue]
    requests: Sequence[Amount]
    usages: Sequence[int]


class KnownLevel(NamedTuple):
    """What came of the same parent and children before, with the same u'."""

    amount: Amount
    requests: Sequence[Amount]
    shares: Sequence[Amount]


def divide_level(
    level: Level, kinds: Kinds, k: float, known: KnownLevel | None = None
) -> list[Amount]:
    """Give each child its share; a resource of which nothing changed is taken as it was known.

    Returns:
        One amount for each of `level.queues`, in their order.
    """
    columns = [
        _column_before(level, known, at) or _column(level, at, whole_unit(kind), k)
        for at, kind in enumerate(kinds)
    ]
    return list(zip(*columns, strict=True))


def _column_before(level: Level, known: KnownLevel | None, at: int) -> Sequence[int] | None:
    if known is None or known.amount[at] != level.amount[at]:
        return None
    if any(new[at] != old[at] for new, old in zip(level.requests, known.requests, strict=True)):
        return None
    return [share[at] for share in known.shares]


def _column(level: Level, at: int, unit: int, k: float) -> Sequence[int]:
    """Divide one resource, the one at this place of all amounts."""
    wanted = [request[at] for request in level.requests]
    available = level.amount[at]
    if sum(wanted) <= available:
        # Nobody is in anybody's way; requests hold no more than a queue may have, weight 0 too.
        return wanted
    demands = [
        # By position: naming the fields doubles the cost, and this is the hot spot of the pass.
        Demand(q.name, q.guarantee[at], request, q.limit[at], q.weight, q.priority, used, q.created)
        for q, request, used in zip(level.queues, wanted, level.usages, strict=True)
        if request
    ]
    found = iter(divide(available, demands, unit=unit, k=k).shares)
    return [next(found) if request else 0 for request in wanted]
