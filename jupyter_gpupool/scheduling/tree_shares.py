"""Every queue's share, top-down: what a parent gets is divided among its children.

Called once per pass. `divide_tree` looks at the whole tree; `divide_again` at what a few changed
requests can have changed, and gives the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jupyter_gpupool.scheduling.amounts import Amount, minimum, nothing
from jupyter_gpupool.scheduling.levels import KnownLevel, Level, divide_level
from jupyter_gpupool.scheduling.queues import Queue, QueueTree
from jupyter_gpupool.scheduling.shares import DEFAULT_K
from jupyter_gpupool.scheduling.usage import normalised


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeShares:
    """What each queue may have, and what it was made from.

    Attributes:
        capacity: What was divided at the top.
        usage: Decayed device-seconds by queue, as of this division; see `usage_by_queue`.
        k: How strongly usage corrects the weights.
        requests: By queue, what it and all below it can make use of.
        shares: By queue.
        changed: Of those the ones that are other than in the division before it, if there was one.
    """

    tree: QueueTree
    capacity: Amount
    usage: Mapping[str, float]
    k: float
    requests: Mapping[str, Amount]
    shares: Mapping[str, Amount]
    changed: Mapping[str, Amount] = field(default_factory=dict, compare=False)


def divide_tree(
    tree: QueueTree,
    capacity: Amount,
    requests: Mapping[str, Amount],
    usage: Mapping[str, float] | None = None,
    *,
    k: float = DEFAULT_K,
) -> TreeShares:
    """Compute every queue's share of every resource.

    Args:
        tree: With users as leaves, where they are to be told apart.
        capacity: What the pool can lease, held or not.
        requests: By leaf, what its claims hold and want; leaves that want nothing may be left out.
        usage: Decayed device-seconds by queue, inner ones included; None for none.
        k: How strongly usage corrects the weights.
    """
    usable = _usable(tree, requests)
    division = TreeShares(
        tree=tree, capacity=capacity, usage=usage or {}, k=k, requests=usable, shares={}
    )
    return _with_shares(division, None, (None, *tree.top_down))


def divide_again(before: TreeShares, changed: Mapping[str, Amount]) -> TreeShares:
    """Divide anew for changed requests of leaves, with capacity, usage and tree as they were.

    Only parents of which a child's request or the own amount changed are divided, and of those
    only the resources in which it did: the paths of the changed leaves, and beside them what
    really got more or less.
    """
    requests = dict(before.requests)
    touched: set[str | None] = set()
    for leaf, request in changed.items():
        _replace(before.tree, requests, leaf, request, touched)
    division = TreeShares(
        tree=before.tree,
        capacity=before.capacity,
        usage=before.usage,
        k=before.k,
        requests=requests,
        shares={},
    )
    return _with_shares(division, before, touched)


def _usable(tree: QueueTree, requests: Mapping[str, Amount]) -> dict[str, Amount]:
    zero = nothing(tree.kinds)
    usable: dict[str, Amount] = {}
    for name in reversed(tree.top_down):
        below = tree.children[name]
        wanted = _sum([usable[child] for child in below]) if below else requests.get(name, zero)
        usable[name] = _within_terms(tree.queues[name], wanted)
    return usable


def _within_terms(queue: Queue, wanted: Amount) -> Amount:
    """Cut a request to what the queue may have, lest its parent be given what nobody can use."""
    if not any(wanted):
        return wanted
    most = minimum(wanted, queue.limit)
    return most if queue.weight > 0 else minimum(most, queue.guarantee)


def _sum(amounts: Sequence[Amount]) -> Amount:
    return tuple(map(sum, zip(*amounts, strict=True)))


def _replace(
    tree: QueueTree,
    requests: dict[str, Amount],
    leaf: str,
    request: Amount,
    touched: set[str | None],
) -> None:
    """Put a leaf's request in place and carry the change up as far as it reaches."""
    usable = _within_terms(tree.queues[leaf], request)
    step: str | None = leaf
    while step is not None and requests[step] != usable:
        requests[step] = usable
        step = tree.queues[step].parent
        touched.add(step)
        if step is not None:
            wanted = _sum([requests[child] for child in tree.children[step]])
            usable = _within_terms(tree.queues[step], wanted)


def _with_shares(
    division: TreeShares, before: TreeShares | None, touched: Iterable[str | None]
) -> TreeShares:
    """Divide below each touched parent, and below each queue whose share is another than before."""
    tree, open_parents = division.tree, set(touched)
    shares, changed = {} if before is None else dict(before.shares), dict[str, Amount]()
    for parent in (None, *tree.top_down):
        if parent not in open_parents or not (below := tree.children[parent]):
            continue
        amount = division.capacity if parent is None else shares[parent]
        level = Level(
            amount=amount,
            queues=[tree.queues[name] for name in below],
            requests=[division.requests[name] for name in below],
            usages=normalised([division.usage.get(name, 0.0) for name in below]),
        )
        known = None if before is None else _known(before, parent)
        for name, share in zip(
            below, divide_level(level, tree.kinds, division.k, known), strict=True
        ):
            if shares.get(name) != share:
                shares[name] = changed[name] = share
                open_parents.add(name)
    return replace(division, shares=shares, changed=changed)


def _known(before: TreeShares, parent: str | None) -> KnownLevel:
    below = before.tree.children[parent]
    return KnownLevel(
        before.capacity if parent is None else before.shares[parent],
        [before.requests[name] for name in below],
        [before.shares[name] for name in below],
    )
