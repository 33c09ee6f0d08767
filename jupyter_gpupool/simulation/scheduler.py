"""What a simulation drives: the scheduling proper, here with books that it keeps.

Kept books do for least attained service alone; `made_anew.py` does for any rules, slowly.
"""

from collections.abc import Sequence
from typing import Protocol

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.rules import Rules, SurplusOrder
from jupyter_gpupool.scheduling import attained_service
from jupyter_gpupool.scheduling.decisions import Decisions
from jupyter_gpupool.scheduling.ledger import Ledger
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import QueueTree
from jupyter_gpupool.scheduling.service_books import ServiceBooks
from jupyter_gpupool.scheduling.shape import HostShape


class Scheduler(Protocol):
    """Knows the claims of a pool and decides; what it decides is done at once."""

    def add(self, claim: ClaimView) -> None:
        """Let a claim wait."""

    def remove(self, claim_id: ClaimId) -> None:
        """Let a claim end. Raises KeyError if there is none."""

    def advance(self, now_s: float) -> None:
        """Let time pass."""

    @property
    def next_s(self) -> float | None:
        """When it may decide otherwise though nothing happens but time; None if never."""

    def decide(self) -> Decisions:
        """Take one pass."""


class KeptBooks:
    """Least attained service in books that live as long as the simulation."""

    def __init__(self, *, tree: QueueTree, hosts: Sequence[HostShape], rules: Rules) -> None:
        if rules.surplus_order is not SurplusOrder.LEAST_ATTAINED_SERVICE:
            raise ValueError(f"books of {rules.surplus_order} cannot be kept")
        view = PoolView(now_s=0.0, tree=tree, hosts=tuple(hosts), claims=(), rules=rules)
        self._books = ServiceBooks(Ledger(view))
        self.add = self._books.add
        self.remove = self._books.remove
        self.advance = self._books.advance

    @property
    def next_s(self) -> float | None:
        """When a claim steps to its next level or may first be asked to give."""
        return self._books.next_s

    def decide(self) -> Decisions:
        """Take one pass."""
        return attained_service.decide(self._books)
