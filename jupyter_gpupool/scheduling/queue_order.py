"""Which queue is served next, and which gives back first: one key, compared down the tree.

At each level the sibling with the smallest key is served, and the one with the largest gives back.
Guarantees come first, then priority, then the queue furthest below its share. After
NVIDIA/KAI-Scheduler's proportion plugin, whose cases this order is held to.
"""

from typing import NamedTuple

from .amounts import NO_LIMIT, Amount
from .ledger import Ledger

_NO_SHARE = 1000.0
"""How much heavier a resource weighs of which a queue has no share at all."""


class Key(NamedTuple):
    """Where a queue stands among its siblings, smallest first.

    Attributes:
        over: It holds more than its share of everything.
        beyond: With what it asks for it would hold more than its guarantee.
        priority: Of the queue, negated.
        urgency: Of the next claim, negated.
        without: It holds, or would hold, something of which it has no share.
        filled_with: Its dominant part of its share, with what it asks for.
        filled: The same without.
        share: What it may have: the weaker first.
        created: The older first.
    """

    over: bool
    beyond: bool
    priority: int
    urgency: int
    without: bool
    filled_with: float
    filled: float
    share: Amount
    created: int
    name: str


def key_of(ledger: Ledger, queue: int, asked: Amount, urgency: int = 0) -> Key:
    """Where a queue stands if it gets `asked` besides what it holds; negative if it gives.

    Args:
        ledger: The books.
        queue: Its number.
        asked: What its next claim asks for.
        urgency: The priority of that claim.
    """
    held, share = ledger.held[queue], ledger.share[queue]
    spec, guarantee = ledger.queues[queue], ledger.guarantee[queue]
    allowed = ledger.allowed[queue]
    wanted = [mine + more for mine, more in zip(held, asked, strict=True)]
    return Key(
        over=all(held[kind] > share[kind] for kind in ledger.counted),
        beyond=any(
            mine > mine_for_sure for mine, mine_for_sure in zip(wanted, guarantee, strict=True)
        ),
        priority=-spec.priority,
        urgency=-urgency,
        without=any(mine > 0 and not fair for mine, fair in zip(wanted, allowed, strict=True)),
        filled_with=_filled(wanted, allowed, ledger.total),
        filled=_filled(held, allowed, ledger.total),
        share=allowed,
        created=spec.created,
        name=spec.name,
    )


def _filled(held: list[int], allowed: Amount, total: Amount) -> float:
    most = 0.0
    for mine, fair, whole in zip(held, allowed, total, strict=True):
        if mine:
            of = whole if fair >= NO_LIMIT else fair
            most = max(most, mine / of if of else mine * _NO_SHARE)
    return most
