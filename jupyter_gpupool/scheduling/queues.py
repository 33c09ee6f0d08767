"""The tree of queues: teams in departments, each user a leaf. Frozen, checked once, asked often.

Built from the policy by the manager, from a line or two by tests. The pool itself is no queue: it
is the parent None of the queues at the top.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jupyter_gpupool.scheduling.amounts import Amount, Kinds, no_limit, nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLimits:
    """What each user of a queue may have at most; None is no limit.

    Attributes:
        devices: Held at once, in thousandths of a device.
        claims: Open at once.
        budget_s: Device-seconds that may be charged within one period.
        period_s: The length of that period.
    """

    devices: int | None = None
    claims: int | None = None
    budget_s: int | None = None
    period_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A node of the fair-share tree.

    Attributes:
        parent: The queue it belongs to, or None at the top.
        guarantee: What it gets whenever it wants it, whoever else wants more.
        weight: Its part of the surplus among its siblings; 0 gets none.
        limit: What it may have at most, surplus included.
        priority: The group in which it stands for the surplus; a higher one is served first.
        max_priority: The highest priority class a claim here may ask for, or None.
        reclaim_min_runtime_s: How long a claim here keeps its leases when other queues want them;
            None: as the queue above says.
        own_min_runtime_s: The same when a claim of this very queue wants them.
        user_limits: What each of its users may have at most.
        created: Which was created earlier wins a tie; any number that grows.
        user: Whose leaf this is, or None for a queue of the policy.
    """

    name: str
    parent: str | None = None
    guarantee: Amount
    weight: float = 1.0
    limit: Amount
    priority: int = 0
    max_priority: int | None = None
    reclaim_min_runtime_s: float | None = None
    own_min_runtime_s: float | None = None
    user_limits: UserLimits = UserLimits()
    created: int = 0
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTree:
    """Queues in name order, and who stands below whom. Made by `queue_checks.grow` alone.

    Attributes:
        kinds: The resources that every amount in it lists.
        queues: By name, in name order.
        children: Names below each queue, in name order; None holds those at the top.
        top_down: Every name, each after its parent.
    """

    kinds: Kinds
    queues: Mapping[str, Queue] = field(repr=False)
    children: Mapping[str | None, tuple[str, ...]]
    top_down: tuple[str, ...] = field(repr=False)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The queues without any below them, in name order."""
        return tuple(name for name in self.queues if not self.children[name])

    def path(self, name: str) -> tuple[str, ...]:
        """List the queue and all above it, up to the top.

        Raises:
            KeyError: There is no such queue.
        """
        path = [name]
        while (parent := self.queues[path[-1]].parent) is not None:
            path.append(parent)
        return tuple(path)

    def common_ancestor(self, one: str, other: str) -> str | None:
        """Find the lowest queue that holds both, or None if only the pool does.

        A queue holds itself.
        """
        above = frozenset(self.path(one))
        return next((name for name in self.path(other) if name in above), None)

    def below(self, ancestor: str | None, name: str) -> str:
        """Find the child of `ancestor` on whose side `name` stands, `name` itself included."""
        path = self.path(name)
        return path[-1] if ancestor is None else path[path.index(ancestor) - 1]


def user_leaf(queue: str, user: str) -> str:
    """Name the leaf of a user in a queue."""
    return f"{queue}/{user}"


def with_users(tree: QueueTree, users: Iterable[tuple[str, str]]) -> QueueTree:
    """Extend the tree by a leaf for each (queue, user), all of one weight, none with a guarantee.

    Args:
        tree: A checked tree; stays as it is.
        users: Pairs of an existing queue and a user's name; repeated ones and those already there
            change nothing.
    """
    leaves = {user_leaf(queue, user): (queue, user) for queue, user in users}
    new = {name: pair for name, pair in sorted(leaves.items()) if name not in tree.queues}
    joined = {name: _leaf(tree, name, *pair) for name, pair in new.items()}
    return link(tree.kinds, [*tree.queues.values(), *joined.values()])


def _leaf(tree: QueueTree, name: str, queue: str, user: str) -> Queue:
    devices, *rest = no_limit(tree.kinds)
    own = tree.queues[queue].user_limits.devices
    return Queue(
        name=name,
        parent=queue,
        guarantee=nothing(tree.kinds),
        limit=(devices if own is None else own, *rest),
        user=user,
    )


def link(kinds: Kinds, queues: Iterable[Queue]) -> QueueTree:
    """Put queues that are known to be sound in order; those from outside go through `grow`."""
    named = {queue.name: queue for queue in sorted(queues, key=lambda queue: queue.name)}
    below: dict[str | None, list[str]] = {None: [], **{name: [] for name in named}}
    for name, queue in named.items():
        below[queue.parent].append(name)
    children = {parent: tuple(names) for parent, names in below.items()}
    return QueueTree(
        kinds=kinds,
        queues=named,
        children=children,
        top_down=_top_down(children),
    )


def _top_down(children: Mapping[str | None, tuple[str, ...]]) -> tuple[str, ...]:
    order: list[str] = []
    level = children[None]
    while level:
        order.extend(level)
        level = tuple(child for name in level for child in children[name])
    return tuple(order)
