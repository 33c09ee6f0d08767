"""Who waits, leaf by leaf, each leaf's claims in the order in which they are served.

Kept between passes by `kept_books`, so that a pass needs to sort nobody.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .bounds import stops
from .fitting import Sieve
from .ledger import Ledger, Member
from .waiting_line import Standing, claim_order

if TYPE_CHECKING:
    from .shape import WorkerShape

Entry = tuple[Standing, Member]


class Waiters:
    """The claims that lack something and for which nothing is being freed.

    Attributes:
        standings: Where each of them stands within its queue.
    """

    def __init__(self, members: Iterable[Member]) -> None:
        self.standings: dict[str, Standing] = {}
        self._by_leaf: dict[int, list[Entry]] = {}
        self._by_need: dict[WorkerShape, dict[int, dict[str, Member]]] = {}
        self._needs: dict[str, int] = {}
        self._timed: dict[str, Member] = {}
        for member in members:
            self.note(member)

    def note(self, member: Member) -> None:
        """Let a claim stand where it belongs now, or nowhere if it lacks nothing."""
        self.leave(member)
        if not member.needs or member.promised:
            return
        claim, needs = member.view.id, member.needs
        standing = self.standings[claim] = claim_order(member)
        insort(self._by_leaf.setdefault(member.leaf, []), (standing, member), key=_standing)
        self._needs[claim] = needs
        alike = self._by_need.setdefault(member.view.worker, {})
        alike.setdefault(needs, {})[claim] = member
        if member.view.time_limit_s is not None or member.view.expected_s is not None:
            self._timed[claim] = member

    def leave(self, member: Member) -> None:
        """Let a claim wait no more."""
        standing = self.standings.pop(member.view.id, None)
        if standing is None:
            return
        waiting = self._by_leaf[member.leaf]
        del waiting[bisect_left(waiting, standing, key=_standing)]
        self._timed.pop(member.view.id, None)
        needs = self._needs.pop(member.view.id)
        alike = self._by_need[member.view.worker]
        del alike[needs][member.view.id]
        if not alike[needs]:
            del alike[needs]

    def fitting(
        self, ledger: Ledger, sieve: Sieve, freed: int, new: Iterable[Member]
    ) -> list[Member]:
        """Those who fit, each for itself, on what is free now.

        Args:
            ledger: The books.
            sieve: What was known of them before these bays were freed.
            freed: Bits of bays; a part of a device fits beside its own people's only there.
            new: Those who were never tried.
        """
        untried = {member.view.id for member in new}
        found: list[Member] = []
        inventory, shared_by = ledger.inventory, ledger.inventory.shared_by
        for shape, alike in self._by_need.items():
            anyone = next((m for members in alike.values() for m in members.values()), None)
            if anyone is None:
                continue
            bound = sieve.probe(inventory, shape, alike, anyone.sharer)
            for needs, members in alike.items():
                if needs < bound:
                    found += members.values()
                elif shape.share:
                    found += (
                        member
                        for member in members.values()
                        if shared_by.get(member.sharer, 0) & freed
                        or member.view.id in untried
                        or ledger.may_be_stopped(member)
                        if sieve.fits(ledger, member)
                    )
        return [member for member in found if stops(ledger, member, member.needs) is None]

    def timed(self) -> Iterable[Member]:
        """Those of whom it is known when they will end: they may fit before what is kept."""
        return self._timed.values()

    def all(self) -> Iterator[Member]:
        """Everybody who waits, leaf by leaf."""
        return (member for waiting in self._by_leaf.values() for _, member in waiting)

    def leaves(self) -> Iterable[int]:
        """The leaves in which anybody waits."""
        return self._by_leaf

    def of(self, leaf: int) -> Iterator[Member]:
        """Those who wait in a leaf, whoever is served first coming first."""
        return (member for _, member in self._by_leaf.get(leaf, ()))


def _standing(entry: Entry) -> Standing:
    return entry[0]
