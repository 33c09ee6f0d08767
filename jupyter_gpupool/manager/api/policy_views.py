"""The policy as callers are shown it: pure."""

from collections.abc import Iterable, Mapping

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.policy_check import Checked
from jupyter_gpupool.manager.service.queue_standings import QueueStanding
from jupyter_gpupool.manager.service.records import PolicyRevision
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.policy import QueueTerms, Resources
from jupyter_gpupool.protocol.policy_lines import line_of_refusal
from jupyter_gpupool.protocol.policy_views import (
    AmountsView,
    CheckView,
    DiffView,
    PolicyProblem,
    QueueView,
    RevisionView,
)

_THOUSANDTHS = 1000
_HOUR_S = 3600


def queue_views(
    caller: Caller, books: Books, standings: Mapping[str, QueueStanding]
) -> tuple[QueueView, ...]:
    """The queues in the document's order: all to an admin, to a user those they may claim in."""
    policy = books.policy.policy
    shown = policy.queues if caller.is_admin else _of_user(caller, policy.queues, books)
    return tuple(
        _queue_view(terms, standings.get(terms.name, _NO_STANDING)).model_copy(
            update=_people(terms) if caller.is_admin else {}
        )
        for terms in shown
    )


def revision_view(made: PolicyRevision, *, with_source: bool = True) -> RevisionView:
    """A revision, with its document unless there are many."""
    return RevisionView(
        revision=made.revision,
        at=made.at,
        by=made.by,
        comment=made.comment,
        restores=made.restores,
        source=made.source if with_source else "",
    )


def check_view(revision: int, source: str, checked: Checked, diff: DiffView) -> CheckView:
    """What was found in a document."""
    return CheckView(
        revision=revision,
        problems=tuple(_problem(source, refusal) for refusal in checked.refusals),
        warnings=checked.effects,
        diff=diff,
    )


_NO_STANDING = QueueStanding(held=0, share=0, waiting=0, waiting_claims=0, used_s=0.0)
"""Of a queue that came between the look at the pool and its answer."""


def _of_user(caller: Caller, queues: Iterable[QueueTerms], books: Books) -> list[QueueTerms]:
    theirs = set(books.policy.policy.queues_of(caller.user))
    return [queue for queue in queues if queue.name in theirs]


def _queue_view(terms: QueueTerms, standing: QueueStanding) -> QueueView:
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
        used_gpu_hours=round(standing.used_s / _HOUR_S, 3),
    )


def _people(terms: QueueTerms) -> dict[str, tuple[str, ...]]:
    return {"users": terms.users, "groups": terms.groups, "leads": terms.leads}


def _amounts(said: Resources) -> AmountsView:
    return AmountsView(
        gpus=None if said.devices is None else said.devices / WHOLE_DEVICE,
        cpus=None if said.cpu is None else said.cpu / _THOUSANDTHS,
        memory_bytes=said.memory_bytes,
        models={model: count / WHOLE_DEVICE for model, count in said.models},
    )


def _problem(source: str, refusal: BadRequest) -> PolicyProblem:
    line = line_of_refusal(source, refusal)
    # The line has a place of its own here.
    hint = refusal.hint.removeprefix(f"See line {line}.").strip()
    message = f"{refusal.message} {hint}".strip()
    return PolicyProblem(line=line, key=refusal.field, message=message)
