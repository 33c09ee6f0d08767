"""How far a queue lives on what others lend: its dominant share, and when taking makes that fairer.

Called by reclaim, with held amounts before and after. Sources: dominant share, Ghodsi et al.,
NSDI'11; above the guarantee and per weight, Kueue KEP-1714; the lexicographic comparison is the
max-min order of the sorted shares.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from jupyter_gpupool.scheduling.amounts import (
    DEVICES,
    Amount,
    Kinds,
    above,
    minimum,
)
from jupyter_gpupool.scheduling.queues import QueueTree


class DominantShare(NamedTuple):
    """The part of what may be lent that a queue holds beyond its guarantee, per weight.

    Compares by its first two fields: a greater one is less fair.

    Attributes:
        weightless: It borrows with weight 0, which is beyond any borrowing with a weight.
        ratio: Of the resource in which it is greatest; per weight, unless weightless.
        kind: That resource's name, or "" if none of what it borrows could be lent at all.
        borrows: It holds more than its guarantee of anything.
    """

    weightless: bool = False
    ratio: float = 0.0
    kind: str = ""
    borrows: bool = False


_DIGITS = 12
"""Beyond these, quotients of whole numbers differ by nothing but their rounding."""
NOTHING_BORROWED: Final = DominantShare()


@lru_cache(maxsize=16)
def resources(kinds: Kinds) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Name the resources that compete for dominance, and the places of their kinds in an amount.

    Devices of single models count together: a guarantee for one model does not pay for another,
    but lending any of them is lending devices.
    """
    models = tuple(at for at, kind in enumerate(kinds) if kind.startswith(f"{DEVICES}:"))
    single = [(kind, (at,)) for at, kind in enumerate(kinds) if at not in models]
    return (*single, *([(f"{DEVICES}:*", models)] if models else []))


def dominant_share(
    *,
    held: Amount,
    guarantee: Amount,
    lendable: Amount,
    weight: float,
    of: Sequence[tuple[str, tuple[int, ...]]],
) -> DominantShare:
    """Compute the dominant share of one queue.

    Args:
        held: By it and all below it.
        guarantee: What of that is its own.
        lendable: What its parent could have at most; see `lendable_below`. A resource of which
            there is none does not count.
        weight: Its weight among its siblings.
        of: The resources, as from `resources`.
    """
    borrowed = above(held, guarantee)
    if not any(borrowed):
        return NOTHING_BORROWED
    parts = [(_ratio(borrowed, lendable, places), kind) for kind, places in of]
    # Equal ratios: the first name counts.
    ratio, kind = min(parts, key=lambda part: (-part[0], part[1]))
    if not ratio:
        return DominantShare(borrows=True)
    if not weight:
        return DominantShare(weightless=True, ratio=ratio, kind=kind, borrows=True)
    return DominantShare(ratio=ratio / weight, kind=kind, borrows=True)


def _ratio(borrowed: Amount, lendable: Amount, places: tuple[int, ...]) -> float:
    whole = sum([lendable[at] for at in places])
    return sum([borrowed[at] for at in places]) / whole if whole > 0 else 0.0


def lendable_below(tree: QueueTree, capacity: Amount, parent: str | None) -> Amount:
    """Find what the children of a queue could hold together at most: capacity within its limits."""
    amount = capacity
    for name in () if parent is None else tree.path(parent):
        amount = minimum(amount, tree.queues[name].limit)
    return amount


def level_shares(
    tree: QueueTree,
    capacity: Amount,
    held: Mapping[str, Amount],
    parent: str | None,
    names: Iterable[str] | None = None,
) -> tuple[DominantShare, ...]:
    """Compute the shares of the children of one queue, all or those named, in their order.

    Args:
        tree: The tree; guarantees without limit are never exceeded.
        capacity: What the pool can lease.
        held: By queue, inner ones included; who holds nothing may be left out.
        parent: Whose children, None for those at the top.
        names: Which of them; reclaim asks only for those that gain or lose.
    """
    lendable, of = lendable_below(tree, capacity, parent), resources(tree.kinds)
    nobody = (0,) * len(tree.kinds)
    return tuple(
        dominant_share(
            held=held.get(name, nobody),
            guarantee=tree.queues[name].guarantee,
            lendable=lendable,
            weight=tree.queues[name].weight,
            of=of,
        )
        for name in (tree.children[parent] if names is None else names)
    )


def is_fairer(after: Iterable[DominantShare], before: Iterable[DominantShare]) -> bool:
    """Whether the sorted shares, greatest first, became lexicographically smaller.

    Shares that are the same before and after may be left out on both sides: the comparison is
    decided by the greatest share that one side has more often, and equal ones cancel.
    """
    return _sorted(after) < _sorted(before)


def _sorted(shares: Iterable[DominantShare]) -> list[tuple[bool, float]]:
    ratios = [(share.weightless, round(share.ratio, _DIGITS)) for share in shares]
    return sorted(ratios, reverse=True)
