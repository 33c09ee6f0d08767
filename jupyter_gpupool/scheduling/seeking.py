"""For whom a pass looks for room next, where it may not look for everybody at once.

Asked by `kept_books`. Leaves take turns, those first in which something has just happened; whenever
the books change, all are looked at again. So a claim is passed over for one turn at most, however
many look in vain.
"""

from collections.abc import Iterable, Sequence

from .ledger import Ledger, Member
from .steps import SEARCHES
from .victims import Holders
from .waiters import Waiters

LEAVES_A_SEARCH = 8
"""For each search that a pass may make it looks at so many leaves, most of which need none."""

FEW = 64
"""So few claims are all looked at whenever anything happens, whomever it concerns."""


class Seeking:
    """Whose turn it is."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._next = 0
        self._left = self._leaves
        self._stirred: dict[int, None] = {}

    @property
    def _leaves(self) -> int:
        # Users come, and with them their leaves.
        return len(self._ledger.names)

    @property
    def is_done(self) -> bool:
        """Whether all have had their turn since the books changed."""
        return not self._left and not self._stirred

    def stir(self, leaves: Iterable[int]) -> None:
        """Something has happened in these leaves: it is their turn next."""
        self._stirred |= dict.fromkeys(leaves)

    def restart(self) -> None:
        """The books have changed: it is everybody's turn once more."""
        self._left = self._leaves

    def finish(self) -> None:
        """All have had their turn."""
        self._left = 0
        self._stirred.clear()

    def choose(self, holders: Holders, waiters: Waiters, searches: int) -> Sequence[Member]:
        """All who wait in the leaves whose turn it is; so many searches do for them."""
        if len(waiters.standings) <= FEW and not self.is_done:
            self.finish()
            return list(waiters.all())
        chosen: list[Member] = []
        leaves: set[int] = set()
        kinds: set[object] = set()
        looks = searches * LEAVES_A_SEARCH
        while not self.is_done and len(kinds) < searches and looks > 0:
            leaf = self._take()
            if leaf in leaves:
                continue
            leaves.add(leaf)
            for member in waiters.of(leaf):
                chosen.append(member)
                if any(search.might(holders, member) for search in SEARCHES):
                    kinds.add((leaf, member.view.worker, member.view.priority))
            looks -= leaf in waiters.leaves()
        return chosen

    def _take(self) -> int:
        if self._stirred:
            leaf = next(iter(self._stirred))
            del self._stirred[leaf]
            return leaf
        leaf, self._next = self._next, (self._next + 1) % self._leaves
        self._left -= 1
        return leaf
