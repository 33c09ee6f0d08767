"""How each queue stands now: its share, what it holds, what waits in it, what it has used.

Made from what a pass sees, when an admin or a user looks at the queues: in a thread, for it takes
as long as the beginning of a pass, and not for everybody anew.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jupyter_gpupool.scheduling.ledger import amount_of
from jupyter_gpupool.scheduling.pool_view import PoolView
from jupyter_gpupool.scheduling.rounds import books_of

_FRESH_FOR_S = 1.0
"""Shares and usage change with time alone, too."""
_REST = 10
"""So many times longer than it took, so that nobody who looks all the time slows the pool down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStanding:
    """A queue and all below it; devices are in thousandths.

    Attributes:
        held: What its claims hold, also what is being taken from them.
        share: What it may hold now before others may take it back: its part of the pool by what
            everybody holds and wants at this moment, and never less than its guarantee.
        waiting: What its waiting claims need to start.
        waiting_claims: How many they are.
        used_s: Device-seconds that still count against its weight, decayed.
    """

    held: int
    share: int
    waiting: int
    waiting_claims: int
    used_s: float


Standings = Mapping[str, QueueStanding]


class QueueStandings:
    """How the queues stand, kept as long as nothing has happened.

    Args:
        look: The pool as a pass sees it now, and what each queue holds, in thousandths.
        mark: Differs once something has happened.
        monotonic: A clock in seconds.
    """

    def __init__(
        self,
        look: Callable[[], tuple[PoolView, Counter[str]]],
        mark: Callable[[], object],
        monotonic: Callable[[], float],
    ) -> None:
        self._look, self._mark, self._monotonic = look, mark, monotonic
        self._known: Standings = {}
        self._made: _Made | None = None
        self._one_at_a_time = asyncio.Lock()

    async def now(self) -> Standings:
        """Every queue of the policy, by name; of a large pool it may be some seconds old."""
        async with self._one_at_a_time:
            if not self._is_fresh():
                mark, began_s = self._mark(), self._monotonic()
                self._known = await asyncio.to_thread(standings_of, *self._look())
                at_s = self._monotonic()
                self._made = _Made(mark=mark, at_s=at_s, took_s=at_s - began_s)
            return self._known

    def _is_fresh(self) -> bool:
        made = self._made
        if made is None:
            return False
        is_same = made.mark == self._mark()
        rest_s = max(_FRESH_FOR_S if is_same else 0.0, _REST * made.took_s)
        return self._monotonic() - made.at_s < rest_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    mark: object
    at_s: float
    took_s: float


def standings_of(view: PoolView, held: Counter[str]) -> Standings:
    """Every queue of the policy, by name."""
    ledger = books_of(view)
    waiting, claims = _waiting(view)
    return {
        name: QueueStanding(
            held=held[name],
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
