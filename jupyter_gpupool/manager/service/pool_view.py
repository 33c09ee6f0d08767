"""The books as one scheduling pass sees them.

Called by `planning.py`, and when somebody asks why a claim waits.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import fsum

from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.scheduling.amounts import NO_LIMIT, no_limit, nothing
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import Queue, QueueTree, link, with_users
from jupyter_gpupool.scheduling.reservations import Booking
from jupyter_gpupool.scheduling.usage import usage_at

from .accounting import has_budget
from .claim_views import claim_views
from .host_shapes import host_shapes
from .reserving import bookings_of
from .sight import Sight
from .standing import View


def build(view: View, now_s: float, monotonic_s: float, sight: Sight | None = None) -> PoolView:
    """Everything a pass needs.

    Args:
        view: The books, or a unit of work on them.
        now_s: Seconds since 1970 (UTC): the axis of every time in the view.
        monotonic_s: For what happened lately.
        sight: What passes before this one remember, if any.
    """
    sight = sight or Sight()
    with sight.look(view) as news:
        claims = claim_views(view, sight, news, now_s, monotonic_s)
        hosts = host_shapes(view, sight, news)
    bookings = bookings_of(view.reservations.values())
    return PoolView(
        now_s=now_s,
        tree=_tree(view, sight, claims, bookings, now_s),
        hosts=hosts,
        claims=claims,
        rules=view.policy.policy.rules,
        usage=_usage(view, now_s),
        bookings=bookings,
    )


def _tree(
    view: View,
    sight: Sight,
    claims: Iterable[ClaimView],
    bookings: tuple[Booking, ...],
    now_s: float,
) -> QueueTree:
    """The policy's queues with a leaf for each user that claims, within what they may use."""
    leaves = {(claim.queue, claim.owner) for claim in claims}
    pairs = frozenset((leaf.partition("/")[0], owner) for leaf, owner in leaves)
    raised = sight.raised(view.policy.tree, bookings, now_s)
    joined = sight.tree(raised, pairs, lambda: _joined(raised, pairs))
    spent = {leaf.name: leaf for leaf in _spent(view, joined, now_s)}
    if not spent:
        return joined
    return link(joined.kinds, [spent.get(name, queue) for name, queue in joined.queues.items()])


def _joined(tree: QueueTree, pairs: frozenset[tuple[str, UserName]]) -> QueueTree:
    if any(not queue for queue, _ in pairs):
        tree = link(tree.kinds, [*tree.queues.values(), _nowhere(tree)])
    return with_users(tree, pairs)


def _nowhere(tree: QueueTree) -> Queue:
    """Where claims stand whose queue is gone and whose owners belong to no other."""
    return Queue(name="", guarantee=nothing(tree.kinds), limit=no_limit(tree.kinds), weight=0.0)


def _spent(view: View, tree: QueueTree, now_s: float) -> Iterator[Queue]:
    """The leaves whose budget is used up: they keep what they hold and get no more."""
    for leaf in tree.queues.values():
        if leaf.user is not None and leaf.parent is not None:
            record = view.usage.get(leaf.name)
            if not has_budget(tree, leaf.parent, record, now_s):
                held = 0 if record is None else record.decayed.held
                yield replace(leaf, limit=(held, *[NO_LIMIT] * (len(tree.kinds) - 1)))


def _usage(view: View, now_s: float) -> dict[str, float]:
    """Decayed device-seconds by queue, users that claim nothing now included."""
    half_life_s = view.policy.policy.rules.half_life_s
    parts: dict[str, list[float]] = {}
    for record in view.usage.values():
        used = usage_at(record.decayed, now_s, half_life_s=half_life_s)
        parts[record.leaf] = [used]
        queue = record.leaf.partition("/")[0]
        for name in view.policy.tree.path(queue) if queue in view.policy.tree.queues else ():
            parts.setdefault(name, []).append(used)
    # Rounded once, so that the order of the books decides nothing.
    return {name: fsum(used) for name, used in parts.items()}
