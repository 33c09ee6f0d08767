"""How one amount is divided among sibling queues: guarantees, then surplus by priority and weight.

Called by `tree_shares` for each level and resource. Source of the steps: NVIDIA KAI-Scheduler,
proportion plugin, resource_division. Where it floors in every round, we fill exactly and floor
once, by largest remainder (Hamilton): so a share is within one unit of what it would be if units
could be cut, and grows with capacity and weight up to that one unit.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from jupyter_gpupool.scheduling.amounts import NO_LIMIT

DEFAULT_K: Final = 0.5
"""How strongly past usage corrects weights; 0 forgets it."""

ALL_USAGE: Final = 10**9
"""The u' of a queue that used all that was used; `Demand.usage` counts in these parts."""

_PARTS: Final = 10**6
"""Weights and k count to six decimals."""

_FINE: Final = 20
"""Bits below one unit of an amount, in which the exact filling counts."""


class Demand(NamedTuple):
    """What one of the siblings is promised, may have, and wants. All amounts of one resource.

    A tuple, for a pass builds some thousands of them.

    Attributes:
        guarantee: `NO_LIMIT` stands for the whole amount that is divided.
        weight: Its part of the surplus; 0 gets none. Counts to six decimals.
        priority: A higher group is served all it wants of the surplus before a lower one.
        usage: The u' of the formula, in parts of `ALL_USAGE`.
        created: Who was created earlier wins a tie; then the name decides.
    """

    name: str
    guarantee: int
    request: int
    limit: int = NO_LIMIT
    weight: float = 1.0
    priority: int = 0
    usage: int = 0
    created: int = 0


class Division(NamedTuple):
    """The shares, in the order of the demands, and what nobody may have or wants."""

    shares: tuple[int, ...]
    left_over: int


def divide(
    amount: int, demands: Sequence[Demand], *, unit: int = 1, k: float = DEFAULT_K
) -> Division:
    """Divide one amount of one resource among siblings.

    The order of the demands decides nothing. Shares add up to more than `amount` only if the
    guarantees alone do: what to do then is not a matter of shares.

    Args:
        amount: What there is.
        demands: One for each sibling; names differ.
        unit: What is given of the surplus at once, such as a whole device; somebody who wants less
            than that last unit gets what is wanted.
        k: How strongly usage corrects the weights.
    """
    # One pass over columns, not objects: this runs thousands of times a pass.
    wanted = [min(demand.request, demand.limit) for demand in demands]
    shares = _guaranteed(amount, demands, wanted)
    surplus = max(0, amount - sum(shares))
    for group in _by_priority(demands, wanted, shares) if surplus else ():
        needs = [wanted[at] - shares[at] for at in group]
        given = _divide_surplus(surplus, [demands[at] for at in group], needs, unit, k)
        for at, more in zip(group, given, strict=True):
            shares[at] += more
        surplus -= sum(given)
    return Division(tuple(shares), surplus)


def _guaranteed(amount: int, demands: Sequence[Demand], wanted: Sequence[int]) -> list[int]:
    """Give each what it wants of its guarantee, even if that is more than there is."""
    promised = [amount if demand.guarantee >= NO_LIMIT else demand.guarantee for demand in demands]
    return list(map(min, promised, wanted))


def _by_priority(
    demands: Sequence[Demand], wanted: Sequence[int], shares: Sequence[int]
) -> Sequence[list[int]]:
    """Group the places of those who want, and may have, surplus; the highest priority first."""
    groups: dict[int, list[int]] = {}
    for at, (demand, most, share) in enumerate(zip(demands, wanted, shares, strict=True)):
        if most > share and demand.weight > 0:
            groups.setdefault(demand.priority, []).append(at)
    return [groups[priority] for priority in sorted(groups, reverse=True)]


def _divide_surplus(
    surplus: int, group: Sequence[Demand], needs: Sequence[int], unit: int, k: float
) -> Sequence[int]:
    if sum(needs) <= surplus:
        # Filling would end here too: whoever is open takes part in each round until satisfied.
        return needs
    return _whole_units(surplus, group, needs, _fill(surplus, group, needs, k), unit)


def _fill(surplus: int, group: Sequence[Demand], needs: Sequence[int], k: float) -> list[int]:
    """Fill by corrected weights, and again among the others whenever somebody is satisfied.

    Returns:
        What each would get if units could be cut, in 2**-_FINE of the amount's unit.
    """
    weights = [int(demand.weight * _PARTS + 0.5) or 1 for demand in group]
    usages = [demand.usage for demand in group]
    left = surplus << _FINE
    room = [need << _FINE for need in needs]
    filled = [0] * len(group)
    still_open = list(range(len(group)))
    while left > 0:
        parts = _corrected([weights[at] for at in still_open], [usages[at] for at in still_open], k)
        whole = sum(parts)
        offers = [left * part // whole for part in parts]
        unsatisfied = []
        for at, offer in zip(still_open, offers, strict=True):
            more = room[at]
            if offer < more:
                more = offer
                unsatisfied.append(at)
            filled[at] += more
            room[at] -= more
            left -= more
        if len(unsatisfied) == len(still_open):
            break
        still_open = unsatisfied
    return filled


def _corrected(weights: Sequence[int], usages: Sequence[int], k: float) -> Sequence[int]:
    """Compute P = max(0, w' + k(w' - u')), times a common factor that keeps it whole.

    w' is a weight's part among those given. If usage leaves nobody anything, the plain weights
    count, for what is free must not lie idle.
    """
    strength = round(k * _PARTS)
    if not strength or not any(usages):
        return weights
    ours, used = (_PARTS + strength) * ALL_USAGE, strength * sum(weights)
    corrected = [ours * w - used * u for w, u in zip(weights, usages, strict=True)]
    parts = [max(0, part) for part in corrected]
    return parts if any(parts) else weights


def _whole_units(
    surplus: int, group: Sequence[Demand], needs: Sequence[int], filled: Sequence[int], unit: int
) -> list[int]:
    """Round down to whole units, and give what is left one by one by largest remainder.

    One round is enough: each receives at least its own remainder, and together they are what is
    left.
    """
    step = unit << _FINE
    given = [
        need if full == need << _FINE else full // step * unit
        for full, need in zip(filled, needs, strict=True)
    ]
    left = surplus - sum(given)
    for *_, at in _turns(group, given, filled) if left else ():
        if not left:
            break
        more = min(unit, left, needs[at] - given[at])
        given[at] += more
        left -= more
    return given


def _turns(
    group: Sequence[Demand], given: Sequence[int], filled: Sequence[int]
) -> list[tuple[int, int, str, int]]:
    """Sort the places by remainder, creation and name.

    Remainders are rounded, so that the dust of the filling's divisions breaks no tie of equals.
    """
    dust = _FINE // 2
    half = 1 << (dust - 1)
    return sorted(
        [
            (-((filled[at] - (given[at] << _FINE) + half) >> dust), demand.created, demand.name, at)
            for at, demand in enumerate(group)
        ]
    )
