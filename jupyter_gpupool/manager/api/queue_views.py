"""Queues as callers are shown them: how they stand, and what is the caller's own. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.service.accounting import spent_s
from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.queue_standings import QueueStanding, Standings
from jupyter_gpupool.manager.service.records import UsageRecord
from jupyter_gpupool.pool.claim import OVER, WAITING
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.policy import QueueTerms, Resources, UserTerms
from jupyter_gpupool.protocol.policy_views import AmountsView, QueueView, YoursView
from jupyter_gpupool.scheduling.decisions import Waiting
from jupyter_gpupool.scheduling.queues import user_leaf

_THOUSANDTHS = 1000
_HOUR_S = 3600
_NO_STANDING = QueueStanding(held=0, share=0, waiting=0, waiting_claims=0, used_s=0.0)
"""Of a queue that came between the look at the pool and its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """Who looks at the queues, at what, and when.

    Attributes:
        waits: Why claims wait, as last explained.
        now_s: Seconds since 1970 (UTC).
    """

    caller: Caller
    books: Books
    standings: Standings
    waits: Mapping[ClaimId, Waiting]
    now_s: float


def queue_views(looking: Looking) -> tuple[QueueView, ...]:
    """The queues in the document's order: all to an admin, to a user those they may claim in."""
    claims = _open_claims(looking.caller.user, looking.books)
    if_moved = _fit_if_moved(looking)
    return tuple(
        _queue_view(terms, claims[terms.name], if_moved[terms.name], looking)
        for terms in _shown(looking)
    )


def _shown(looking: Looking) -> Sequence[QueueTerms]:
    policy = looking.books.policy.policy
    if looking.caller.is_admin:
        return policy.queues
    theirs = policy.queues_of(looking.caller.user)
    return [queue for queue in policy.queues if queue.name in theirs]


def _open_claims(user: UserName, books: Books) -> Counter[str]:
    """How many a user has in each queue."""
    mine = (record.claim for record in books.claims.values() if record.claim.owner == user)
    queues = (books.policy.queue_of(claim) for claim in mine if claim.phase not in OVER)
    return Counter(queue.name for queue in queues if queue is not None)


def _fit_if_moved(looking: Looking) -> Counter[str]:
    """How many claims would fit if others moved, by queue and all above it."""
    books, found = looking.books, Counter[str]()
    for wait in looking.waits.values():
        record = books.claims.get(wait.claim_id) if wait.moves else None
        if record is not None and record.claim.phase in WAITING:
            queue = books.policy.queue_of(record.claim)
            found.update(() if queue is None else books.policy.tree.path(queue.name))
    return found


def _queue_view(terms: QueueTerms, claims: int, if_moved: int, looking: Looking) -> QueueView:
    standing = looking.standings.get(terms.name, _NO_STANDING)
    used = looking.books.usage.get(user_leaf(terms.name, looking.caller.user))
    people = _people(terms) if looking.caller.is_admin else {}
    return QueueView(
        name=terms.name,
        parent=terms.parent,
        guarantee=_amounts(terms.guarantee),
        limit=_amounts(terms.limit),
        weight=terms.weight,
        priority=terms.priority,
        share=standing.share / WHOLE_DEVICE,
        held=standing.held / WHOLE_DEVICE,
        waiting=standing.waiting / WHOLE_DEVICE,
        waiting_claims=standing.waiting_claims,
        fit_if_moved=if_moved,
        used_gpu_hours=round(standing.used_s / _HOUR_S, 3),
        yours=_yours(terms.per_user, used, claims, looking.now_s),
        **people,
    )


def _people(terms: QueueTerms) -> Mapping[str, tuple[str, ...]]:
    return {"users": terms.users, "groups": terms.groups, "leads": terms.leads}


def _yours(limits: UserTerms, used: UsageRecord | None, claims: int, now_s: float) -> YoursView:
    return YoursView(
        held=0.0 if used is None else used.decayed.held / WHOLE_DEVICE,
        most_held=None if limits.devices is None else limits.devices / WHOLE_DEVICE,
        claims=claims,
        most_claims=limits.claims,
        gpu_hours=round(_spent_s(limits, used, now_s) / _HOUR_S, 3),
        most_gpu_hours=None if limits.device_s is None else limits.device_s / _HOUR_S,
        period_s=limits.period_s,
    )


def _spent_s(limits: UserTerms, used: UsageRecord | None, now_s: float) -> float:
    if used is None or limits.period_s is None:
        return 0.0
    return spent_s(used, now_s, limits.period_s)


def _amounts(said: Resources) -> AmountsView:
    return AmountsView(
        gpus=None if said.devices is None else said.devices / WHOLE_DEVICE,
        cpus=None if said.cpu is None else said.cpu / _THOUSANDTHS,
        memory_bytes=said.memory_bytes,
        models={model: count / WHOLE_DEVICE for model, count in said.models},
    )
