"""Who could start on what is free now, seen before anybody is served.

Called by `granting`. Claims with equal shapes fit together or not at all, so each shape is tried a
few times, however many wait. Who fits alone may yet find no room when its turn comes; who does not
fit now finds none in this walk, for it frees nothing.
"""

from bisect import bisect_left
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from .bits import bits
from .bounds import Hindrance, stops
from .decisions import Constraint
from .inventory import Inventory
from .ledger import Ledger, Member
from .shape import WorkerShape
from .spots import place, spots_for
from .wish import Wish

_STRANGER = "\0"
"""Somebody who shares no device with anybody; no user and no queue has this name."""


class Sifted(NamedTuple):
    """Those who fit, and what stands against the others, both in the order of the asking."""

    fitting: list[Member]
    hindered: list[Hindrance]


class Sieve:
    """What is known of who does not fit; may be kept while nothing is given back.

    Attributes:
        too_big: By shape, a number of workers for which there is no room.
    """

    def __init__(self) -> None:
        self.too_big: dict[WorkerShape, int] = {}

    def sift(self, ledger: Ledger, waiting: Iterable[Member]) -> Sifted:
        """Part those who could be served, each for itself, from all others."""
        sifted, open_to = Sifted([], []), list[Member]()
        for member in waiting:
            hindrance = stops(ledger, member, member.needs)
            if hindrance is None:
                open_to.append(member)
            else:
                sifted.hindered.append(hindrance)
        self._probe(ledger, open_to)
        for member in open_to:
            if self.fits(ledger, member):
                sifted.fitting.append(member)
            else:
                sifted.hindered.append(Hindrance(member, Constraint.DEVICES))
        return sifted

    def fits(self, ledger: Ledger, member: Member) -> bool:
        """Whether there is room for a claim, as far as is known, or beside its own people."""
        count, shape = member.needs, member.view.worker
        if count < self.too_big.get(shape, count + 1):
            return True
        if not shape.share or not _might_share(ledger.inventory, shape, member.sharer):
            return False
        return bool(place(ledger, member, count, count))

    def note(self, member: Member) -> None:
        """Remember that a claim found no room."""
        count, shape = member.needs, member.view.worker
        self.too_big[shape] = min(count, self.too_big.get(shape, count))

    def forget(self, inventory: Inventory, bays: int) -> None:
        """Something in these bays was given back: whoever accepts one of them may fit now."""
        for shape in [s for s in self.too_big if inventory.accepting(s) & bays]:
            del self.too_big[shape]

    def _probe(self, ledger: Ledger, waiting: Iterable[Member]) -> None:
        """Find, for each shape that waits, the smallest number of workers that does not fit."""
        wanted: dict[WorkerShape, set[int]] = {}
        sharers: dict[WorkerShape, str] = {}
        for member in waiting:
            shape = member.view.worker
            if member.needs < self.too_big.get(shape, member.needs + 1):
                wanted.setdefault(shape, set()).add(member.needs)
                sharers[shape] = member.sharer and _STRANGER
        inventory = ledger.inventory
        for shape, found in wanted.items():
            wish = Wish(shape, sharers[shape], inventory.accepting(shape))
            counts = sorted(found)
            at = bisect_left(counts, x=True, key=partial(_lacks, inventory, wish))
            if at < len(counts):
                self.too_big[shape] = counts[at]


def _lacks(inventory: Inventory, wish: Wish, count: int) -> bool:
    return len(spots_for(inventory, wish, count)) < count


def _might_share(inventory: Inventory, shape: WorkerShape, sharer: str) -> bool:
    """Whether a part of a device fits beside others of the same people, cores left aside."""
    shared = inventory.shared_by.get(sharer, 0) if sharer else 0
    return any(
        left >= shape.share and bay.sharers[position] == sharer
        for bay in map(inventory.bays.__getitem__, bits(shared & inventory.accepting(shape)))
        for position, left in bay.parts.items()
    )
