"""Which queue is served next, and which gives back first: one key, compared down the tree.

At each level the sibling with the smallest key is served, and the one with the largest gives back.
Guarantees come first, then priority, then the queue furthest below its share. After
NVIDIA/KAI-Scheduler's proportion plugin, whose cases this order is held to.
"""

from collections.abc import Sequence
from typing import TypeAlias

from .amounts import Amount
from .ledger import Ledger

_NO_SHARE = 0.001
"""As how little a share counts that is nothing at all."""

Key: TypeAlias = tuple[bool, bool, int, int, bool, float, float, Amount, int, str]
"""Where a queue stands among its siblings, smallest first; a plain tuple, for there are thousands.

In turn: it holds more than its share and its guarantee of everything; with what is asked it would
hold more than its guarantee; its priority, negated; that of its next claim, negated; it would hold
something of which it has no share; its dominant part of its share with what is asked, and without;
what it may have, the weaker first; the older; the name.
"""


def key_of(
    ledger: Ledger, queue: int, held: Sequence[int], each: Amount, count: int, *, urgency: int = 0
) -> Key:
    """Where a queue stands if it gets something, or after it has given something.

    Args:
        ledger: The books.
        queue: Its number.
        held: What it holds before.
        each: What a worker of its next claim counts for.
        count: How many of them it asks for; -1 if `each` is what it has been asked to give.
        urgency: The priority of that claim.
    """
    guarantee, allowed, filled_at = (
        ledger.guarantee[queue],
        ledger.allowed[queue],
        ledger.full[queue],
    )
    priority, created, name = ledger.ranks[queue]
    over, beyond, without, filled_with, filled = True, False, False, 0.0, 0.0
    # Written out, for this runs ten thousand times a pass.
    for kind in ledger.counted:
        has, of = held[kind], filled_at[kind] or _NO_SHARE
        wanted = has + each[kind] * count
        if has <= allowed[kind]:
            over = False
        if wanted > guarantee[kind]:
            beyond = True
        if of == _NO_SHARE and wanted:
            without = True
        if wanted > filled_with * of:
            filled_with = wanted / of
        if has > filled * of:
            filled = has / of
    return (
        over,
        beyond,
        priority,
        -urgency,
        without,
        filled_with,
        filled,
        allowed,
        created,
        name,
    )


Rank: TypeAlias = tuple[bool, bool, int, int]
"""The first part of a key, which no fair share outweighs."""


def rank_of(
    ledger: Ledger, queue: int, held: Sequence[int], each: Amount, count: int, *, urgency: int
) -> Rank:
    """What of a queue's key comes before how full it is."""
    over, beyond, priority, negated, *_ = key_of(ledger, queue, held, each, count, urgency=urgency)
    return over, beyond, priority, negated


class KnownKeys:
    """Where queues stood when they were asked last, for books that live on between passes."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[list[int], Amount, Amount, int, int, Key]] = {}

    def key_of(
        self, ledger: Ledger, queue: int, each: Amount, count: int, *, urgency: int = 0
    ) -> Key:
        """Where a queue stands with what it holds now, as from `key_of`."""
        held, share = ledger.held[queue], ledger.share[queue]
        known = self._known.get(queue)
        if known is not None and known[0] == held and known[1:5] == (share, each, count, urgency):
            return known[5]
        key = key_of(ledger, queue, held, each, count, urgency=urgency)
        self._known[queue] = (list(held), share, each, count, urgency, key)
        return key
