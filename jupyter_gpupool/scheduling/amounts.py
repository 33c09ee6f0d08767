"""Resource vectors: how much of everything a queue is given, may have at most, wants or holds.

An amount is a plain tuple of integers, for a pass adds and compares thousands of them. Its order is
that of the tree's kinds: devices first, then CPU, host memory, and devices of single models.
"""

from collections.abc import Sequence
from operator import add as _add
from operator import le as _le
from operator import sub as _sub
from typing import Final, TypeAlias

Kinds: TypeAlias = tuple[str, ...]
"""The names of the resources, in the order of every amount. `DEVICES` is always the first."""

Amount: TypeAlias = tuple[int, ...]
"""One integer per kind: thousandths of a device, thousandths of a core, bytes."""

DEVICES: Final = "devices"
CPU: Final = "cpu"
MEMORY: Final = "memory"
BASE_KINDS: Final[Kinds] = (DEVICES, CPU, MEMORY)

WHOLE_DEVICE: Final = 1000
"""A whole device, in the thousandths that amounts count."""

UNLIMITED: Final = -1
"""How a policy or a file writes "no limit". Never inside an `Amount`."""

NO_LIMIT: Final = 1 << 62
"""How an `Amount` holds "no limit": above anything a pool can have, sums included."""


def devices_of(model: str) -> str:
    """Name the kind that counts the devices of one model alone."""
    return f"{DEVICES}:{model}"


def whole_unit(kind: str) -> int:
    """Give the step in which shares of this kind are divided: whole devices, else single units."""
    return WHOLE_DEVICE if kind == DEVICES or kind.startswith(f"{DEVICES}:") else 1


def from_edge(values: tuple[int, ...]) -> Amount:
    """Take an amount as policies and files write it, where `UNLIMITED` stands for no limit."""
    return tuple(NO_LIMIT if value == UNLIMITED else value for value in values)


def nothing(kinds: Kinds) -> Amount:
    """Give the amount of zero of everything."""
    return (0,) * len(kinds)


def no_limit(kinds: Kinds) -> Amount:
    """Give the amount that limits nothing."""
    return (NO_LIMIT,) * len(kinds)


def add(one: Amount, other: Amount) -> Amount:
    """Add kind by kind."""
    return tuple(map(_add, one, other))


def more(held: Sequence[int], each: Amount, count: int) -> Amount:
    """Add so many times an amount to what is held."""
    if len(each) == 1:
        return (held[0] + each[0] * count,)
    return tuple([mine + other * count for mine, other in zip(held, each, strict=True)])


def subtract(one: Amount, other: Amount) -> Amount:
    """Subtract kind by kind; what is missing comes out negative."""
    return tuple(map(_sub, one, other))


def above(one: Amount, other: Amount) -> Amount:
    """Give what `one` has beyond `other`, kind by kind, never negative."""
    both = zip(one, other, strict=True)
    return tuple([mine - theirs if mine > theirs else 0 for mine, theirs in both])


def minimum(one: Amount, other: Amount) -> Amount:
    """Take the smaller one, kind by kind."""
    return tuple(map(min, one, other))


def is_within(amount: Sequence[int], bound: Sequence[int]) -> bool:
    """Whether no kind of `amount` goes beyond `bound`, for sequences of any type."""
    if len(amount) == 1:
        return amount[0] <= bound[0]
    return all(map(_le, amount, bound))


def fits(amount: Amount, within: Amount) -> bool:
    """Whether no kind of `amount` goes beyond `within`."""
    return all(map(_le, amount, within))
