"""One amount divided among sibling queues. Every case counts in whole units of its resource."""

from collections.abc import Mapping
from typing import Any

from cases.outcome import Outcome, compared

from jupyter_gpupool.scheduling.amounts import NO_LIMIT, UNLIMITED, WHOLE_DEVICE
from jupyter_gpupool.scheduling.shares import ALL_USAGE, Demand, divide


def run(case: Mapping[str, Any]) -> Outcome:
    """Divide, and compare the shares, and what is left over where the case says it."""
    given, expected = case["input"], case["expect"]
    demands = [demand_of(queue) for queue in given["queues"]]
    division = divide(
        thousandths(given["amount_to_divide"]),
        demands,
        unit=WHOLE_DEVICE,
        k=given.get("usage_weight_k", 0),
    )
    names = [demand.name for demand in demands]
    found = {
        "fair_share": dict(zip(names, map(units, division.shares), strict=True)),
        "left_over": units(division.left_over),
    }
    return compared(found={key: found[key] for key in expected}, expected=dict(expected))


def demand_of(queue: Mapping[str, Any]) -> Demand:
    """Translate one queue of a case."""
    return Demand(
        name=queue["name"],
        guarantee=bound(queue.get("quota", 0)),
        request=thousandths(queue.get("request", 0)),
        limit=bound(queue.get("limit")),
        weight=queue.get("weight", 1),
        priority=queue.get("priority", 0),
        usage=round(queue.get("usage", 0) * ALL_USAGE),
        created=queue.get("created", 0),
    )


def bound(units_or_none: float | None) -> int:
    """Translate a quota or a limit, where None and -1 are none at all."""
    if units_or_none is None or units_or_none == UNLIMITED:
        return NO_LIMIT
    return thousandths(units_or_none)


def thousandths(amount: float) -> int:
    """Translate units of a case to ours."""
    return round(amount * WHOLE_DEVICE)


def units(amount: int) -> float:
    """Translate back."""
    return amount / WHOLE_DEVICE
