"""How each queue stands now: its share, what it holds, what waits in it, what it has used.

Made from what a pass sees, when an admin or a user looks at the queues.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_gpupool.scheduling.ledger import amount_of
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.rounds import books_of


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStanding:
    """A queue and all below it; devices are in thousandths.

    Attributes:
        share: What it may hold now before others may take it back: its part of the pool by what
            everybody holds and wants at this moment, and never less than its guarantee.
        waiting: What its waiting claims need to start.
        waiting_claims: How many they are.
        used_s: Device-seconds that still count against its weight, decayed.
    """

    share: int
    waiting: int
    waiting_claims: int
    used_s: float


def standings_of(view: PoolView) -> Mapping[str, QueueStanding]:
    """Every queue of the policy, by name. Takes as long as the beginning of a pass."""
    ledger = books_of(view)
    waiting, claims = _waiting(view)
    return {
        name: QueueStanding(
            share=ledger.full[ledger.number[name]][0],
            waiting=waiting[name],
            waiting_claims=claims[name],
            used_s=view.usage.get(name, 0.0),
        )
        for name, queue in view.tree.queues.items()
        if queue.user is None
    }


def _waiting(view: PoolView) -> tuple[Counter[str], Counter[str]]:
    """What waiting claims need, and how many they are, by queue and all above it."""
    needed: Counter[str] = Counter()
    claims: Counter[str] = Counter()
    for claim in view.claims:
        if claim.held:
            continue
        for name in view.tree.path(claim.queue):
            needed[name] += claim.minimum * amount_of(claim.worker, view.tree.kinds)[0]
            claims[name] += 1
    return needed, claims
