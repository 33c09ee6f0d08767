"""Who has waited too long, and in which turn each of them gets a reservation.

Asked by `backfill` in every pass. `BlockedLine` remembers the turns between passes, leaf by leaf:
a pass over books that are kept looks at those leaves alone of which something has changed.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush, nsmallest
from itertools import chain
from typing import NamedTuple, TypeAlias

from .amounts import NO_LIMIT
from .bounds import stops
from .ledger import Ledger, Member
from .standing import Standing, standing_of

_Claim: TypeAlias = tuple[Standing, float]
"""What right somebody has to what it asks for, and since when it waits."""


class Blocked(NamedTuple):
    """A blocked claim in its turn; no two compare equal, for ids differ."""

    claim: _Claim
    rank: int
    since_s: float
    claim_id: str
    member: Member


def is_blocked(ledger: Ledger, member: Member) -> bool:
    """Whether a claim has waited too long for its minimum, and for nothing but devices."""
    return _is_old(ledger, member.view.since_s) and _lacks_devices(ledger, member)


def _is_old(ledger: Ledger, since_s: float) -> bool:
    return ledger.now_s - since_s >= ledger.rules.blocked_for_s


def _lacks_devices(ledger: Ledger, member: Member) -> bool:
    if member.has >= member.view.minimum or member.promised:
        return False
    return not ledger.may_be_stopped(member) or stops(ledger, member, member.needs) is None


def first_in_turn(ledger: Ledger, waiting: Iterable[Member], most: int) -> list[Member]:
    """The better right first, then the oldest; within a queue the higher rank, then the oldest.

    Args:
        ledger: The books.
        waiting: Who lacks something.
        most: So many of those that are blocked.
    """
    by_leaf: dict[int, list[Member]] = {}
    bests: dict[int, _Claim] = {}
    for member in waiting:
        if is_blocked(ledger, member):
            leaf = member.leaf
            claim = standing_of(ledger, member, member.needs), member.view.since_s
            by_leaf.setdefault(leaf, []).append(member)
            bests[leaf] = min(claim, bests.get(leaf, claim))
    # Whoever is among the first stands in a leaf whose best claim is: most leaves are left out.
    best = sorted((claim, leaf) for leaf, claim in bests.items())
    leaves = [leaf for claim, leaf in best if claim <= best[min(most, len(best)) - 1][0]]
    turns = chain.from_iterable(_turns(ledger, by_leaf[leaf]) for leaf in leaves)
    return [turn.member for turn in nsmallest(most, turns)]


def _turns(ledger: Ledger, blocked: Iterable[Member]) -> Iterator[Blocked]:
    """The turns of the blocked claims of one leaf, in no order.

    Who is first there stands for all behind it: what is given to the lower would be taken again for
    the higher, and small claims, that fit in what is left of a share, would keep a gang out.
    """
    by_rank: dict[int, list[Member]] = {}
    for member in blocked:
        by_rank.setdefault(member.view.priority, []).append(member)
    best: _Claim | None = None
    for rank in sorted(by_rank):
        claims = [(standing_of(ledger, m, m.needs), m.view.since_s) for m in by_rank[rank]]
        best = min(claims) if best is None else min(best, *claims)
        for member in by_rank[rank]:
            yield Blocked(best, -rank, member.view.since_s, member.view.id, member)


class BlockedLine:
    """The turns of all who are blocked, remembered between passes.

    Args:
        ledger: The books.
        waiting: Gives those who wait in a leaf.
        most: For so many there are reservations.
    """

    def __init__(
        self, ledger: Ledger, waiting: Callable[[int], Iterable[Member]], most: int
    ) -> None:
        self._ledger, self._waiting, self._most = ledger, waiting, most
        self._first: dict[int, list[Blocked]] = {}
        self._heads: list[tuple[Blocked, int]] = []
        self._stirred = set(range(len(ledger.names)))
        self._young: list[tuple[float, int]] = []
        self._youngest: dict[int, float] = {}
        self._rooms: dict[int, tuple[int, ...]] = {}
        self._below: dict[int, tuple[int, ...]] = {}

    def stir(self, leaf: int) -> None:
        """Something of a leaf has changed: who waits there, or what its share is."""
        self._stirred.add(leaf)

    def stir_all(self) -> None:
        """All may have changed, the number of leaves too."""
        self._stirred.update(range(len(self._ledger.names)))
        self._below.clear()

    def changed(self, member: Member) -> None:
        """A claim waits, holds or is promised something else than before."""
        ledger = self._ledger
        self._stirred.add(member.leaf)
        bounding = {ledger.team[member.leaf], *ledger.limited(member.leaf)}
        if member.view.firm:
            bounding.update(member.path)
        for queue in bounding:
            # What is used up stays so, whoever holds it: below most queues nothing changes.
            room = self._room(queue)
            if self._rooms.get(queue) != room:
                self._rooms[queue] = room
                self._stirred.update(self._leaves_below(queue))

    def _room(self, queue: int) -> tuple[int, ...]:
        ledger = self._ledger
        guarantee, limit = ledger.guarantee[queue], ledger.limit[queue]
        held, firm = ledger.held[queue], ledger.firm[queue]
        bounds = ((guarantee, held), (guarantee, firm), (limit, held))
        # Beyond any limit there is always room.
        return tuple(
            max(0, most - has) if most < NO_LIMIT else -1
            for amount, by in bounds
            for most, has in zip(amount, by, strict=True)
        )

    def _leaves_below(self, queue: int) -> tuple[int, ...]:
        found = self._below.get(queue)
        if found is None:
            children = self._ledger.children[queue]
            below = chain.from_iterable(map(self._leaves_below, children))
            found = self._below[queue] = tuple(below) if children else (queue,)
        return found

    @property
    def next_s(self) -> float | None:
        """Since when the next one waits who may be blocked by time alone."""
        return self._young[0][0] if self._young else None

    def is_true(self) -> bool:
        """Whether nothing has changed, time included, since the turns were asked for last."""
        return not self._stirred and not self._has_grown_old()

    def _has_grown_old(self) -> bool:
        return bool(self._young) and _is_old(self._ledger, self._young[0][0])

    def first(self) -> list[Member]:
        """Those who get a reservation, in their turn."""
        while self._has_grown_old():
            _, leaf = heappop(self._young)
            self._youngest.pop(leaf, None)
            self._stirred.add(leaf)
        for leaf in self._stirred:
            self._look_at(leaf)
        self._stirred.clear()
        # Whoever is among the first stands in a leaf whose first one is.
        leaves = [leaf for _, leaf in self._heads[: self._most]]
        turns = chain.from_iterable(self._first[leaf] for leaf in leaves)
        return [turn.member for turn in nsmallest(self._most, turns)]

    def _look_at(self, leaf: int) -> None:
        if before := self._first.pop(leaf, None):
            del self._heads[bisect_left(self._heads, (before[0], leaf))]
        ledger, old = self._ledger, list[Member]()
        young: float | None = None
        for member in self._waiting(leaf):
            since_s = member.view.since_s
            if not _is_old(ledger, since_s):
                young = since_s if young is None else min(young, since_s)
            elif _lacks_devices(ledger, member):
                old.append(member)
        if young is not None and self._youngest.get(leaf) != young:
            self._youngest[leaf] = young
            heappush(self._young, (young, leaf))
        if old:
            first = self._first[leaf] = nsmallest(self._most, _turns(ledger, old))
            insort(self._heads, (first[0], leaf))
