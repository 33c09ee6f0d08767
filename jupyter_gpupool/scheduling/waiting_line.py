"""The claims that wait, down the tree of queues, in the order in which they are served.

Made anew by each step of a pass. What a queue holds changes while claims are served, so each queue
is entered anew among its siblings whenever something below it changes; older entries are skipped.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from .ledger import Ledger, Member
from .queue_order import Key, key_of


def claim_order(member: Member) -> tuple[int, int, float, float, str]:
    """Who is served first within a queue: priority, below minimum, deadline, age."""
    view = member.view
    state = 0 if member.has < view.minimum else 1 if member.has == view.minimum else 2
    deadline = view.deadline_s if view.deadline_s is not None else float("inf")
    return (-view.priority, state, deadline, view.since_s, view.id)


class Line:
    """The claims that wait, down the tree of queues. Claims come out in the order of service."""

    def __init__(self, ledger: Ledger, members: Iterable[Member]) -> None:
        self._ledger = ledger
        self._waiting: dict[int, list[tuple[tuple[int, int, float, float, str], Member]]] = {}
        self._children: dict[int, list[tuple[Key, int, int]]] = {-1: []}
        self._version: dict[int, int] = {}
        for member in members:
            waiting = self._waiting.setdefault(member.leaf, [])
            waiting.append((claim_order(member), member))
        for leaf, waiting in self._waiting.items():
            heapify(waiting)
            self._refresh(leaf)

    def pop(self) -> Member | None:
        """Take the next claim out, or None if nobody waits any more."""
        queue = -1
        while queue not in self._waiting:
            child = self._first(queue)
            if child is None:
                return None
            queue = child
        member = heappop(self._waiting[queue])[1]
        self._refresh(queue)
        return member

    def push(self, member: Member) -> None:
        """Let a claim wait again, after the books have changed."""
        waiting = self._waiting.setdefault(member.leaf, [])
        heappush(waiting, (claim_order(member), member))
        self._refresh(member.leaf)

    def changed(self, leaf: int) -> None:
        """What a queue holds has changed."""
        self._refresh(leaf)

    def _first(self, queue: int) -> int | None:
        heap = self._children.get(queue, [])
        while heap:
            _, version, child = heap[0]
            if self._version[child] == version:
                return child
            heappop(heap)
        return None

    def _refresh(self, queue: int) -> None:
        """Enter a queue, and those above it, anew among their siblings."""
        while queue >= 0:
            self._version[queue] = version = self._version.get(queue, 0) + 1
            parent = self._ledger.parent[queue]
            head = self._head(queue)
            if head is not None:
                count = head.needs
                asked = tuple(amount * count for amount in head.each)
                entry = (key_of(self._ledger, queue, asked, head.view.priority), version, queue)
                heappush(self._children.setdefault(parent, []), entry)
            queue = parent

    def _head(self, queue: int) -> Member | None:
        while queue not in self._waiting:
            child = self._first(queue)
            if child is None:
                return None
            queue = child
        waiting = self._waiting[queue]
        return waiting[0][1] if waiting else None
