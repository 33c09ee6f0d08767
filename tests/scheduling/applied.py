"""The pool after a plan: everything that it takes freed at once, everything promised held."""

from dataclasses import replace

from jupyter_gpupool.scheduling.decisions import Decisions, TakeHow
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.shape import HeldWorker


def applied(view: PoolView, decided: Decisions, *, takes_s: float = 10.0) -> PoolView:
    """Carry a plan out in no time; the clock goes on by `takes_s`."""
    held = without_what_goes(view, decided)
    for move in decided.moves:
        held[move.claim_id] += move.to
    for given in (*decided.grants, *decided.promises):
        held[given.claim_id] += given.workers
    ended = released(decided)
    claims = (
        replace(holding(view, claim, held[claim.id]), promised=())
        for claim in view.claims
        if claim.id not in ended
    )
    return replace(view, claims=tuple(claims), now_s=view.now_s + takes_s)


def without_what_goes(view: PoolView, decided: Decisions) -> dict[str, list[HeldWorker]]:
    """What each claim still holds once it has given back what is taken or moved."""
    held: dict[str, list[HeldWorker]] = {claim.id: list(claim.held) for claim in view.claims}
    for part in (*decided.takes, *decided.moves):
        for worker in part.workers:
            held[part.claim_id].remove(worker)
    return held


def released(decided: Decisions) -> frozenset[str]:
    """The claims that end, for they cannot hibernate."""
    return frozenset(take.claim_id for take in decided.takes if take.how is TakeHow.RELEASE)


def holding(view: PoolView, claim: ClaimView, held: list[HeldWorker]) -> ClaimView:
    """A claim with what it holds now; one that has lost all of it hibernates, and is not idle."""
    if held:
        started_s = view.now_s if claim.started_s is None else claim.started_s
        return replace(claim, held=tuple(held), started_s=started_s, hibernated=False)
    stopped = claim.hibernated or bool(claim.held)
    return replace(claim, held=(), started_s=None, hibernated=stopped, idle=False)
