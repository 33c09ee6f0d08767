"""The queues of a tree as numbers, for a pass asks for them a hundred thousand times.

Made by `ledger` for its books. Whatever is kept by queue there is a list in the order of these.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from .amounts import NO_LIMIT
from .queues import Queue, QueueTree


@dataclass(frozen=True, slots=True)
class Numbering:
    """Queues by number, each after its parent; -1 is above all.

    Attributes:
        paths: The number of each queue, with those of the queues above it.
        limited: Of each queue's path those that have a limit.
        team: The nearest queue of each path that is no user's own leaf.
    """

    names: tuple[str, ...]
    number: dict[str, int]
    queues: list[Queue]
    parent: list[int]
    children: dict[int, list[int]]
    paths: list[tuple[int, ...]]
    limited: list[tuple[int, ...]]
    team: list[int]


def numbered(tree: QueueTree) -> Numbering:
    """Number the queues of a tree from the top down."""
    names = tree.top_down
    number = {name: at for at, name in enumerate(names)}
    queues = [tree.queues[name] for name in names]
    parent = [-1 if queue.parent is None else number[queue.parent] for queue in queues]
    children: dict[int, list[int]] = {at: [] for at in range(-1, len(queues))}
    for at, above in enumerate(parent):
        children[above].append(at)
    paths = list(_paths(parent))
    has_limit = {at for at, queue in enumerate(queues) if min(queue.limit) < NO_LIMIT}
    limited = [tuple(at for at in path if at in has_limit) for path in paths]
    team = [next(at for at in path if queues[at].user is None) for path in paths]
    return Numbering(names, number, queues, parent, children, paths, limited, team)


def _paths(parent: list[int]) -> Iterator[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for at, above in enumerate(parent):
        path = (at, *found[above]) if above >= 0 else (at,)
        found.append(path)
        yield path
