"""Who waits, leaf by leaf, each leaf's claims in the order in which they are served.

Kept between passes by `kept_books`, so that a pass needs to sort nobody.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from .ledger import Member
from .waiting_line import Standing, claim_order

if TYPE_CHECKING:
    from jupyter_gpupool.pool.ids import ClaimId

Entry = tuple[Standing, Member]


class Waiters:
    """The claims that lack something and for which nothing is being freed."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._by_leaf: dict[int, list[Entry]] = {}
        self._standings: dict[ClaimId, Standing] = {}
        for member in members:
            self.note(member)

    def note(self, member: Member) -> None:
        """Let a claim stand where it belongs now, or nowhere if it lacks nothing."""
        self.leave(member)
        if member.needs and not member.promised:
            standing = self._standings[member.view.id] = claim_order(member)
            insort(self._by_leaf.setdefault(member.leaf, []), (standing, member), key=_standing)

    def leave(self, member: Member) -> None:
        """Let a claim wait no more."""
        standing = self._standings.pop(member.view.id, None)
        if standing is None:
            return
        waiting = self._by_leaf[member.leaf]
        del waiting[bisect_left(waiting, standing, key=_standing)]
        if not waiting:
            del self._by_leaf[member.leaf]

    def leaves(self) -> Iterable[int]:
        """The leaves in which anybody waits."""
        return self._by_leaf

    def of(self, leaf: int) -> Iterator[Member]:
        """Those who wait in a leaf, whoever is served first coming first."""
        return (member for _, member in self._by_leaf.get(leaf, ()))

    def those(self, might: Callable[[Member], bool]) -> Iterator[Member]:
        """All who might be served."""
        for waiting in self._by_leaf.values():
            for _, member in waiting:
                if might(member):
                    yield member


def _standing(entry: Entry) -> Standing:
    return entry[0]
