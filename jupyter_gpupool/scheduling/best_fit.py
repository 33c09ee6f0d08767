"""Whole devices for which nothing else of the host counts: fewest hosts, smallest gap that fits.

All of it is a few operations on bits, whatever the size of the pool. The best fit on one host
leaves emptier hosts for larger gangs; only a gang that fits on no single host goes to several, the
emptiest first and, where that costs no further host, within one rack.
"""

import sys
from collections.abc import Callable, Sequence

from .inventory import Inventory, Spot
from .topology import nearest_in
from .wish import Wish


def best_fit(inventory: Inventory, wish: Wish, most: int) -> tuple[Spot, ...]:
    """Choose spots for up to so many workers."""
    each, found = wish.shape.devices, list[Spot]()
    while left := most - len(found):
        bay = _holding_all(inventory.by_free, wish, left * each)
        if bay is None:
            if not found:
                wish = wish._replace(among=_one_rack(inventory, wish, left))
            bay = _emptiest(inventory.by_free, wish, each)
        if bay is None:
            break
        count = min(left, inventory.bays[bay].whole.bit_count() // each)
        found += spots_in(inventory, bay, count, each)
        if count < left:
            here = 1 << bay
            wish = wish.with_workers_in(inventory, bay)._replace(among=wish.among & ~here)
    return tuple(found)


def has_room(inventory: Inventory, wish: Wish, count: int) -> bool:
    """Whether so many workers fit, which costs a tenth of finding out where."""
    each, among, room = wish.shape.devices, wish.among, 0
    for free, bays in enumerate(inventory.by_free[each:], each):
        room += free // each * (bays & among).bit_count()
        if room >= count:
            return True
    return False


def spots_in(inventory: Inventory, bay: int, count: int, each: int) -> list[Spot]:
    """Spots for so many workers in a bay: all near each other, and each worker's nearer still."""
    if not each:
        return [Spot(bay, 0)] * count
    left, groups, found = inventory.choose(bay, count * each), inventory.groups(bay), list[Spot]()
    for _ in range(count):
        devices = nearest_in(groups, left, each)
        left &= ~devices
        found.append(Spot(bay, devices))
    return found


def _holding_all(by_free: list[int], wish: Wish, wanted: int) -> int | None:
    """The bay with the fewest free devices of those that hold all that is wanted."""
    holding = 0
    for bays in by_free[wanted:]:
        holding |= bays
    holding = wish.preferred(holding & wish.among)
    if not holding:
        return None
    return next(wish.one_of(bays & holding) for bays in by_free[wanted:] if bays & holding)


def _emptiest(by_free: list[int], wish: Wish, each: int) -> int | None:
    """The bay with the most free devices, if it has enough for one worker."""
    for bays in reversed(by_free[each:]):
        if found := bays & wish.among:
            return wish.one_of(wish.preferred(found))
    return None


def _one_rack(inventory: Inventory, wish: Wish, count: int) -> int:
    """Bits of the bays of one rack where a gang needs no more hosts than anywhere, else of all."""
    racks, among, each = inventory.layout.racks, wish.among, wish.shape.devices
    if len(racks) <= 1 or among & (wish.own | wish.data):
        return among
    by_room = [(free // each, bays & among) for free, bays in enumerate(inventory.by_free)]
    levels = [level for level in reversed(by_room) if all(level)]
    least = _hosts_for(levels, among, count)
    # The emptiest of so few hosts takes no less than the average.
    large = _at_least(levels, -(-count // least)) if least else 0
    fitting = [
        bays & among
        for name, bays in racks.items()
        if name and bays & large and _hosts_for(levels, bays, count, least) == least
    ]
    return min(fitting, key=_fullness(inventory, wish), default=among)


def _at_least(levels: Sequence[tuple[int, int]], room: int) -> int:
    """Bits of the bays on which so many workers fit."""
    found = 0
    for in_each, bays in levels:
        found |= bays if in_each >= room else 0
    return found


def _hosts_for(
    levels: Sequence[tuple[int, int]], among: int, count: int, most: int = sys.maxsize
) -> int:
    """How many hosts a gang needs, given how many workers fit on which; 0 if `most` are too few."""
    hosts = 0
    for in_each, bays in levels:
        needed, here = -(-count // in_each), (bays & among).bit_count()
        if needed <= here:
            return hosts + needed if hosts + needed <= most else 0
        hosts, count = hosts + here, count - here * in_each
        if hosts >= most:
            return 0
    return 0


def _fullness(inventory: Inventory, wish: Wish) -> Callable[[int], tuple[bool, int, int]]:
    """How racks compare: those where the claim is already, then those with the least free."""
    by_free = [(free, bays) for free, bays in enumerate(inventory.by_free) if free and bays]

    def key(bays: int) -> tuple[bool, int, int]:
        free = sum([n * (found & bays).bit_count() for n, found in by_free])
        return not bays & wish.racks, free, bays & -bays

    return key
