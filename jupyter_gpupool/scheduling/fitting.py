"""Who could start on what is free now, seen before anybody is served.

Called by `granting`. Claims with equal shapes fit together or not at all, so each shape is tried a
few times, however many wait. Who fits alone may yet find no room when its turn comes; who does not
fit now finds none in this walk, for it frees nothing.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import partial
from sys import maxsize
from typing import NamedTuple

from .bits import bits
from .bounds import Hindrance, stops
from .decisions import Constraint
from .inventory import Inventory
from .ledger import Ledger, Member
from .shape import WorkerShape
from .spots import fits, place
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
            hindrance = None
            if ledger.may_be_stopped(member):
                hindrance = stops(ledger, member, member.needs)
            if hindrance is None:
                open_to.append(member)
            else:
                sifted.hindered.append(hindrance)
        self._probe(ledger, open_to)
        # Those alike fit together or not at all.
        known: dict[tuple[int, int], bool] = {}
        for member in open_to:
            alike = member.alike, member.needs
            if alike not in known:
                known[alike] = self.fits(ledger, member)
            if known[alike]:
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

    def might_fit(self, ledger: Ledger, member: Member) -> bool:
        """The same for somebody who will be placed at once, which tells for certain."""
        count, shape = member.needs, member.view.worker
        if count < self.too_big.get(shape, count + 1):
            return True
        return bool(shape.share) and _might_share(ledger.inventory, shape, member.sharer)

    def note(self, member: Member) -> None:
        """Remember that a claim found no room."""
        count, shape = member.needs, member.view.worker
        self.too_big[shape] = min(count, self.too_big.get(shape, count))

    def forget(self, inventory: Inventory, bays: int) -> None:
        """Something in these bays was given back: whoever accepts one of them may fit now."""
        for shape in [s for s in self.too_big if inventory.accepting(s) & bays]:
            del self.too_big[shape]

    def _probe(self, ledger: Ledger, waiting: Iterable[Member]) -> None:
        needed: dict[int, tuple[Member, set[int]]] = {}
        for member in waiting:
            if member.alike not in needed:
                needed[member.alike] = member, set()
            needed[member.alike][1].add(member.needs)
        wanted: dict[WorkerShape, tuple[str, set[int]]] = {}
        for member, counts in needed.values():
            wanted.setdefault(member.view.worker, (member.sharer, set()))[1].update(counts)
        for shape, (sharer, counts) in wanted.items():
            self.probe(ledger.inventory, shape, counts, sharer)

    def probe(
        self, inventory: Inventory, shape: WorkerShape, counts: Iterable[int], sharer: str
    ) -> int:
        """Find the smallest of some numbers of workers of a shape that do not fit.

        Args:
            inventory: What is free.
            shape: Of the workers.
            counts: How many are wanted.
            sharer: Of any of those who want them; "" if anybody may share with anybody.

        Returns:
            That number, or more than all of them if all fit.
        """
        bound = self.too_big.get(shape, maxsize)
        wish = Wish(shape, sharer and _STRANGER, inventory.accepting(shape))
        asked = sorted(count for count in counts if count < bound)
        at = bisect_left(asked, x=True, key=partial(_lacks, inventory, wish))
        if at < len(asked):
            bound = self.too_big[shape] = asked[at]
        return bound


def least_needs(members: Iterable[Member]) -> dict[WorkerShape, int]:
    """The fewest workers of each shape that any of these would take at once."""
    least: dict[WorkerShape, int] = {}
    for member in members:
        shape, needs = member.view.worker, member.needs
        count = needs if member.has + needs == member.view.maximum else 1
        least[shape] = min(count, least.get(shape, count))
    return least


def is_full(inventory: Inventory, least: Mapping[WorkerShape, int]) -> bool:
    """Whether too few whole devices are free for each of these, wherever they are."""
    return not any(_devices_might_do(inventory, *item) for item in least.items())


def _devices_might_do(inventory: Inventory, shape: WorkerShape, count: int) -> bool:
    accepted, each, room = inventory.accepting(shape), shape.devices or 1, 0
    for free, bays in enumerate(inventory.by_free[each:], each):
        room += free // each * (bays & accepted).bit_count()
        if room >= (1 if shape.share else count):
            return True
    return not shape.thousandths


def _lacks(inventory: Inventory, wish: Wish, count: int) -> bool:
    return not fits(inventory, wish, count)


def _might_share(inventory: Inventory, shape: WorkerShape, sharer: str) -> bool:
    """Whether a part of a device fits beside others of the same people, cores left aside."""
    shared = inventory.shared_by.get(sharer, 0) if sharer else 0
    return any(
        left >= shape.share and bay.sharers[position] == sharer
        for bay in map(inventory.bays.__getitem__, bits(shared & inventory.accepting(shape)))
        for position, left in bay.open_parts()
    )
