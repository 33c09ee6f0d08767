"""The pool after a plan: everything that it takes freed at once, everything promised held."""

from dataclasses import replace

from jupyter_gpupool.scheduling.decisions import Decisions
from jupyter_gpupool.scheduling.pool_view import PoolView


def applied(view: PoolView, decided: Decisions, *, takes_s: float = 10.0) -> PoolView:
    """Carry a plan out in no time; the clock goes on by `takes_s`."""
    held = {claim.id: list(claim.held) for claim in view.claims}
    for part in (*decided.takes, *decided.moves):
        for worker in part.workers:
            held[part.claim_id].remove(worker)
    for move in decided.moves:
        held[move.claim_id] += move.to
    for given in (*decided.grants, *decided.promises):
        held[given.claim_id] += given.workers
    claims = (
        replace(claim, held=tuple(held[claim.id]), started_s=_started(claim.started_s, view))
        if held[claim.id]
        else replace(claim, held=(), started_s=None)
        for claim in view.claims
    )
    return replace(view, claims=tuple(claims), now_s=view.now_s + takes_s)


def _started(before_s: float | None, view: PoolView) -> float:
    return view.now_s if before_s is None else before_s
