"""Scheduling for a simulation as the manager does it: a view of the pool made anew for every pass.

It does for any rules, a policy's dry run among them. Least attained service is a thousand times
faster with books that are kept (`scheduler.py`), and decides the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.rules import Rules, SurplusOrder
from jupyter_gpupool.scheduling.amounts import WHOLE_DEVICE
from jupyter_gpupool.scheduling.decisions import Decisions
from jupyter_gpupool.scheduling.ledger import Ledger
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import QueueTree
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.service_books import ServiceBooks
from jupyter_gpupool.scheduling.shape import HeldWorker, HostShape

_LOOK_AGAIN_S = 60.0
"""How often a pass is taken while somebody waits, for rules by which time alone decides."""


class MadeAnew:
    """The claims of a pool as views; what is decided is done at once."""

    def __init__(self, *, tree: QueueTree, hosts: Sequence[HostShape], rules: Rules) -> None:
        self._tree, self._hosts, self._rules = tree, tuple(hosts), rules
        self._claims: dict[ClaimId, ClaimView] = {}
        self._now_s = 0.0

    def add(self, claim: ClaimView) -> None:
        """Let a claim wait."""
        self._claims[claim.id] = claim

    def remove(self, claim_id: ClaimId) -> None:
        """Let a claim end.

        Raises:
            KeyError: There is no such claim.
        """
        del self._claims[claim_id]

    def advance(self, now_s: float) -> None:
        """Let time pass, and count what is held in it."""
        passed_s, self._now_s = now_s - self._now_s, now_s
        for claim in self._claims.values():
            if claim.held:
                held = len(claim.held) * claim.worker.thousandths
                self._change(claim, attained_s=claim.attained_s + passed_s * held / WHOLE_DEVICE)

    @property
    def next_s(self) -> float | None:
        """When a pass may decide otherwise though nothing happens but time; None if never."""
        if self._rules.surplus_order is SurplusOrder.LEAST_ATTAINED_SERVICE:
            return ServiceBooks(Ledger(self.view())).next_s
        claims = self._claims.values()
        # While nobody holds anything, waiting longer changes nothing.
        may_change = any(c.held for c in claims) and any(len(c.held) < c.maximum for c in claims)
        return self._now_s + _LOOK_AGAIN_S if may_change else None

    def view(self) -> PoolView:
        """The pool as a pass sees it now."""
        return PoolView(
            now_s=self._now_s,
            tree=self._tree,
            hosts=self._hosts,
            claims=tuple(self._claims.values()),
            rules=self._rules,
        )

    def decide(self) -> Decisions:
        """Take one pass, and do what it decides."""
        decided = plan(self.view())
        for take in decided.takes:
            self._hold(take.claim_id, _without(self._claims[take.claim_id].held, take.workers))
        for move in decided.moves:
            left = tuple(_without(self._claims[move.claim_id].held, move.workers))
            self._hold(move.claim_id, left)
            self._hold(move.claim_id, (*left, *move.to))
        for grant in decided.grants:
            self._hold_more(grant.claim_id, grant.workers)
        for promise in decided.promises:
            self._hold_more(promise.claim_id, promise.workers)
        return decided

    def _hold_more(self, claim_id: ClaimId, workers: Sequence[HeldWorker]) -> None:
        self._hold(claim_id, (*self._claims[claim_id].held, *workers))

    def _hold(self, claim_id: ClaimId, held: Iterable[HeldWorker]) -> None:
        claim, now_holds = self._claims[claim_id], tuple(held)
        started_s = self._now_s if claim.started_s is None else claim.started_s
        self._change(
            claim,
            held=now_holds,
            started_s=started_s if now_holds else None,
            hibernated=not now_holds,
        )

    def _change(self, claim: ClaimView, **changes: object) -> None:
        self._claims[claim.id] = replace(claim, **changes)  # type: ignore[arg-type] # its fields


def _without(held: Iterable[HeldWorker], gone: Iterable[HeldWorker]) -> Iterator[HeldWorker]:
    left = list(held)
    for worker in gone:
        left.remove(worker)
    yield from left
