"""Which workers a scheduler lets go of, given its orders: pure.

Called by `members` whenever the orders or the workers change. Repeated orders name nobody new.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from jupyter_gpupool.protocol.launch import Orders


@dataclass(frozen=True, slots=True)
class Membership:
    """Names of a scheduler's workers.

    Attributes:
        workers: Registered ones, those that are retiring among them.
        retiring: Handing over their results.
        retired: Handed over; one that comes back under such a name goes again.
    """

    workers: tuple[str, ...] = ()
    retiring: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()


Spare = Callable[[int], Sequence[str]]
"""Names of that many workers which the scheduler can best spare, the best first."""


def names_to_retire(orders: Orders, membership: Membership, spare: Spare) -> tuple[str, ...]:
    """The workers to begin to retire now."""
    staying = [name for name in membership.workers if name not in membership.retiring]
    named = [name for name in staying if name in orders.retire or name in membership.retired]
    left = [name for name in staying if name not in named]
    if orders.keep_workers is None or len(left) <= orders.keep_workers:
        return tuple(named)
    surplus = len(left) - max(0, orders.keep_workers)
    leaving = len(membership.workers) - len(left)
    return (*named, *_best_spared(left, surplus, spare(surplus + leaving)))


def _best_spared(left: Sequence[str], surplus: int, offered: Collection[str]) -> Sequence[str]:
    # The scheduler may offer fewer than asked for, sparing busy ones; the order still stands.
    best = [name for name in offered if name in left]
    return [*best, *(name for name in reversed(left) if name not in best)][:surplus]
