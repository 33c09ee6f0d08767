"""The queues of a tree as numbers, for a pass asks for them a hundred thousand times.

Made by `ledger` for its books. Whatever is kept by queue there is a list in the order of these.
"""

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

    names: list[str]
    number: dict[str, int]
    queues: list[Queue]
    parent: list[int]
    children: dict[int, list[int]]
    paths: list[tuple[int, ...]]
    limited: list[tuple[int, ...]]
    team: list[int]

    def add(self, queue: Queue) -> int:
        """Number one more queue, after its parent; gives its number."""
        at, above = len(self.names), -1 if queue.parent is None else self.number[queue.parent]
        path = (at, *self.paths[above]) if above >= 0 else (at,)
        self.names.append(queue.name)
        self.number[queue.name] = at
        self.queues.append(queue)
        self.parent.append(above)
        self.children[above].append(at)
        self.children[at] = []
        self.paths.append(path)
        self.limited.append(tuple(q for q in path if min(self.queues[q].limit) < NO_LIMIT))
        self.team.append(at if queue.user is None else self.team[above])
        return at


def numbered(tree: QueueTree) -> Numbering:
    """Number the queues of a tree from the top down."""
    found = Numbering([], {}, [], [], {-1: []}, [], [], [])
    for name in tree.top_down:
        found.add(tree.queues[name])
    return found
