"""The division of shares once more, slowly: exact fractions, straight from the words of the issue.

Written from the rule, not from the code it judges; knows no trick and no rounding.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import floor

from jupyter_gpupool.scheduling.amounts import NO_LIMIT
from jupyter_gpupool.scheduling.shares import ALL_USAGE, Demand


def reference_division(
    amount: int, demands: Sequence[Demand], *, unit: int, k: Fraction
) -> dict[str, int]:
    """Divide as `shares.divide` promises to; gives shares by name."""
    wanted = {d.name: min(d.request, d.limit) for d in demands}
    shares = {
        d.name: min(wanted[d.name], amount if d.guarantee == NO_LIMIT else d.guarantee)
        for d in demands
    }
    surplus = max(0, amount - sum(shares.values()))
    for priority in sorted({d.priority for d in demands}, reverse=True):
        group = [
            d
            for d in demands
            if d.priority == priority and d.weight > 0 and wanted[d.name] > shares[d.name]
        ]
        needs = {d.name: wanted[d.name] - shares[d.name] for d in group}
        for name, more in _divided(surplus, group, needs, unit, k).items():
            shares[name] += more
            surplus -= more
    return shares


def _divided(
    surplus: int, group: Sequence[Demand], needs: dict[str, int], unit: int, k: Fraction
) -> dict[str, int]:
    exact = _poured(Fraction(surplus), group, needs, k)
    given = {
        name: needs[name] if water == needs[name] else unit * floor(water / unit)
        for name, water in exact.items()
    }
    left = min(surplus, sum(needs.values())) - sum(given.values())
    turns = sorted(group, key=lambda d: (given[d.name] - exact[d.name], d.created, d.name))
    for demand in turns:
        more = min(unit, left, needs[demand.name] - given[demand.name])
        given[demand.name] += more
        left -= more
    return given


def _poured(
    surplus: Fraction, group: Sequence[Demand], needs: dict[str, int], k: Fraction
) -> dict[str, Fraction]:
    water = {d.name: Fraction(0) for d in group}
    while surplus > 0 and (thirsty := [d for d in group if water[d.name] < needs[d.name]]):
        parts = _corrected_weights(thirsty, k)
        pour = {d.name: surplus * parts[d.name] / sum(parts.values()) for d in thirsty}
        overflows = any(water[n] + more >= needs[n] for n, more in pour.items())
        for name, more in pour.items():
            drunk = min(more, needs[name] - water[name])
            water[name] += drunk
            surplus -= drunk
        if not overflows:
            break
    return water


def _corrected_weights(thirsty: Sequence[Demand], k: Fraction) -> dict[str, Fraction]:
    weights = {d.name: Fraction(d.weight).limit_denominator(10**6) for d in thirsty}
    all_weights = sum(weights.values())
    parts = {}
    for demand in thirsty:
        own = weights[demand.name] / all_weights
        used = Fraction(demand.usage, ALL_USAGE)
        parts[demand.name] = max(Fraction(0), own + k * (own - used))
    return parts if any(parts.values()) else weights
