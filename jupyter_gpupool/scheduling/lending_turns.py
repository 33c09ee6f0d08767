"""Whose turn it is to give back what it borrows: down the tree, the greatest dominant share first.

For `ending_loans`. Source: Kueue KEP-1714, fair sharing in a hierarchy.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from .amounts import Amount
from .dominance import DominantShare
from .lending import LendingBooks


class Holding(NamedTuple):
    """A claim with what it holds or asks for.

    Attributes:
        granted_s: When it was granted; the youngest gives back first.
        since_s: When it asked.
    """

    claim: str
    queue: str
    amount: Amount
    priority: int = 0
    granted_s: float = 0.0
    since_s: float = 0.0


def order_of_asking(claimant: str, holding: Holding) -> tuple[bool, int, float, str]:
    """Claims of queues other than the claimant's, then the lowest priority, then the youngest."""
    is_own = holding.queue == claimant
    return is_own, holding.priority, -holding.granted_s, holding.claim


class Turns:
    """Whose turn it is to give back: queues, as long as they have candidates and borrow.

    Between two turns a candidate of the queue is taken out of `waiting`, or all of them are.
    """

    def __init__(self, books: LendingBooks, claimant: str, candidates: Iterable[Holding]) -> None:
        """Let each queue wait with its candidates.

        Args:
            books: Looked at anew at each turn, for in between somebody gives back.
            claimant: The queue for which they give back.
            candidates: In the order in which those of one queue are asked.
        """
        self.waiting: dict[str, list[Holding]] = {name: [] for name in books.accounts}
        for holding in candidates:
            self.waiting[holding.queue].append(holding)
        self._books = books
        self._on_path = books.path(claimant)
        self._closed: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        top = self._on_path[-1]
        while top not in self._closed:
            if (queue := self._below(top)) is not None:
                yield queue

    def _below(self, queue: str) -> str | None:
        """The queue that borrows most, or None if only something was found to be closed."""
        books = self._books
        if not books.children[queue]:
            return self._leaf(queue)
        open_ones = [c for c in books.children[queue] if c not in self._closed]
        shares = {child: books.share(child) for child in open_ones}
        for child, share in shares.items():
            # On the claimant's own path there may be an imbalance further down.
            if not (share.borrows or child in self._on_path) or self._has_nobody(child):
                self._closed.add(child)
        left = [child for child in open_ones if child not in self._closed]
        if not left:
            self._closed.add(queue)
            return None
        return self._below(min(left, key=self._first_of(shares)))

    def _leaf(self, queue: str) -> str | None:
        if self._has_nobody(queue):
            self._closed.add(queue)
            return None
        return queue

    def _has_nobody(self, queue: str) -> bool:
        return not (self._books.children[queue] or self.waiting[queue])

    def _first_of(
        self, shares: Mapping[str, DominantShare]
    ) -> Callable[[str], tuple[bool, float, bool, tuple[object, ...]]]:
        def standing(child: str) -> tuple[bool, float, bool, tuple[object, ...]]:
            share, waiting = shares[child], self.waiting[child]
            is_leaf = not self._books.children[child]
            # Among equals an inner queue goes first, for the least fair below it can be asked.
            order = order_of_asking(self._on_path[0], waiting[0]) if is_leaf else (child,)
            return not share.weightless, -share.ratio, is_leaf, order

        return standing
