"""The claims that wait, down the tree of queues, in the order in which they are served.

Made anew by each step of a pass. What a queue holds changes while claims are served, so each queue
is entered anew among its siblings whenever something below it changes; older entries are skipped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from .ledger import Ledger, Member
from .queue_order import Key, KnownKeys, key_of

Standing = tuple[int, int, float, float, str]


def claim_order(member: Member) -> Standing:
    """Who is served first within a queue: priority, below minimum, deadline, age."""
    view, has = member.view, member.has
    state = 0 if has < view.minimum else 1 if has == view.minimum else 2
    deadline = view.deadline_s if view.deadline_s is not None else float("inf")
    return (-view.priority, state, deadline, view.since_s, view.id)


@dataclass(frozen=True, slots=True)
class Known:
    """What books that live on know of the line.

    Attributes:
        keys: Where queues stood.
        standings: Where claims stand within their queues, as far as it is known.
    """

    keys: KnownKeys = field(default_factory=KnownKeys)
    standings: Mapping[str, Standing] = field(default_factory=dict)


class Line:
    """The claims that wait. `leaf` says whose turn it is, `first` which of its claims."""

    def __init__(
        self, ledger: Ledger, members: Iterable[Member], known: Known | None = None
    ) -> None:
        self._ledger, self._keys = ledger, known.keys if known else None
        standings = known.standings if known else {}
        self._waiting: dict[int, list[tuple[Standing, Member]]] = {}
        self._below: dict[int, list[tuple[Key, int, int]]] = {-1: []}
        self._version = [0] * len(ledger.names)
        self._heads: dict[int, Member | None] = {}
        self._entered: dict[int, Key] = {}
        for member in members:
            known_standing = standings.get(member.view.id) if standings else None
            standing = known_standing or claim_order(member)
            self._waiting.setdefault(member.leaf, []).append((standing, member))
        for waiting in self._waiting.values():
            heapify(waiting)
        self._enter_all()

    def _enter_all(self) -> None:
        # From below, so that each queue is entered once, by the first claim below it.
        queues = {queue for leaf in self._waiting for queue in self._ledger.path_of(leaf)}
        for queue in sorted(queues, reverse=True):
            self._enter(queue)

    def leaf(self) -> int | None:
        """The queue whose turn it is, or None if nobody waits any more."""
        queue = -1
        while queue not in self._waiting:
            child = self._first_below(queue)
            if child is None:
                return None
            queue = child
        return queue

    def first(self, leaf: int) -> Member | None:
        """The claim of a queue whose turn it is, if any waits there."""
        waiting = self._waiting[leaf]
        return waiting[0][1] if waiting else None

    def leave(self, leaf: int) -> None:
        """Take the first claim of a queue out; `refresh` follows when all is done there."""
        heappop(self._waiting[leaf])

    def rest(self) -> list[Member]:
        """All who wait still."""
        return [member for waiting in self._waiting.values() for _, member in waiting]

    def push(self, member: Member) -> None:
        """Let a claim wait again; `refresh` follows."""
        heappush(self._waiting[member.leaf], (claim_order(member), member))

    def refresh(self, queue: int) -> None:
        """Enter a queue, and those above it, anew among their siblings."""
        while queue >= 0:
            self._enter(queue)
            queue = self._ledger.parent[queue]

    def _enter(self, queue: int) -> None:
        """Enter a queue among its siblings, those below it having been entered before."""
        waiting = self._waiting.get(queue)
        if waiting is None:
            child = self._first_below(queue)
            head = None if child is None else self._heads[child]
        else:
            head = waiting[0][1] if waiting else None
        self._heads[queue] = head
        if head is None:
            self._version[queue] += 1
            self._entered.pop(queue, None)
            return
        ledger = self._ledger
        each, needs, urgency = head.each, head.needs, head.view.priority
        if self._keys is None:
            key = key_of(ledger, queue, ledger.held[queue], each, needs, urgency=urgency)
        else:
            key = self._keys.key_of(ledger, queue, each, needs, urgency=urgency)
        if self._entered.get(queue) != key:
            self._version[queue] += 1
            self._entered[queue] = key
            heap = self._below.setdefault(ledger.parent[queue], [])
            heappush(heap, (key, self._version[queue], queue))

    def _first_below(self, queue: int) -> int | None:
        heap = self._below.get(queue, ())
        while heap:
            _, version, child = heap[0]
            if self._version[child] == version:
                return child
            heappop(heap)
        return None


def in_line(ledger: Ledger, members: Iterable[Member]) -> list[Member]:
    """Those who wait, in the order in which the line comes to them, each queue's together."""
    line, order = Line(ledger, members), list[Member]()
    while (leaf := line.leaf()) is not None:
        while (member := line.first(leaf)) is not None:
            order.append(member)
            line.leave(leaf)
        line.refresh(leaf)
    return order
