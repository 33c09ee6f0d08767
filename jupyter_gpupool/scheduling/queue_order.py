"""Which queue is served next, and which gives back first: one key, compared down the tree.

At each level the sibling with the smallest key is served, and the one with the largest gives back.
Guarantees come first, then priority, then the queue furthest below its share. After
NVIDIA/KAI-Scheduler's proportion plugin, whose cases this order is held to.
"""

from typing import TypeAlias

from .amounts import NO_LIMIT, Amount
from .ledger import Ledger

_NO_SHARE = 1000.0
"""How much heavier a resource weighs of which a queue has no share at all."""

Key: TypeAlias = tuple[bool, bool, int, int, bool, float, float, Amount, int, str]
"""Where a queue stands among its siblings, smallest first; a plain tuple, for there are thousands.

In turn: it holds more than its share of everything; with what is asked it would hold more than its
guarantee; its priority, negated; that of its next claim, negated; it would hold something of which
it has no share; its dominant part of its share with what is asked, and without; what it may have,
the weaker first; the older; the name.
"""


def key_of(ledger: Ledger, queue: int, each: Amount, count: int, *, urgency: int = 0) -> Key:
    """Where a queue stands if it gets something, or after it has given something.

    Args:
        ledger: The books.
        queue: Its number.
        each: What a worker of its next claim counts for.
        count: How many of them it asks for; -1 if `each` is what it has been asked to give.
        urgency: The priority of that claim.
    """
    held, share = ledger.held[queue], ledger.share[queue]
    guarantee, allowed = ledger.guarantee[queue], ledger.allowed[queue]
    over, beyond, without, filled_with, filled = True, False, False, 0.0, 0.0
    for kind in ledger.counted:
        has, may = held[kind], allowed[kind]
        wanted = has + each[kind] * count
        over = over and has > share[kind]
        beyond = beyond or wanted > guarantee[kind]
        if wanted:
            without = without or not may
            filled_with = max(filled_with, _filled(wanted, may, ledger.total[kind]))
        if has:
            filled = max(filled, _filled(has, may, ledger.total[kind]))
    spec = ledger.queues[queue]
    rank = (-spec.priority, -urgency, without, filled_with, filled, allowed)
    return (over, beyond, *rank, spec.created, spec.name)


def _filled(amount: int, allowed: int, total: int) -> float:
    of = total if allowed >= NO_LIMIT else allowed
    return amount / of if of else amount * _NO_SHARE
