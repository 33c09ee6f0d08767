"""Where the workers of one claim go: fewest hosts, and the least harm to whoever comes next.

Called by every step of a pass. Whole devices for which nothing else of the host counts go by best
fit (`best_fit.py`), all else by least fragmentation (`fragmentation.py`).
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .best_fit import best_fit, has_room, spots_in
from .bits import bits
from .inventory import Inventory, Spot
from .ledger import Ledger, Member
from .shape import WorkerShape
from .wish import Wish, wish_of

_Finder: TypeAlias = Callable[[Inventory, Wish, int], Sequence[Spot]]
"""Finds spots in one bay for one worker, or for more of those that are left."""


def place(ledger: Ledger, member: Member, least: int, most: int) -> tuple[Spot, ...]:
    """Choose between `least` and `most` spots for workers of a claim, or none if there are too few.

    Changes nothing in the end.
    """
    inventory, least = ledger.inventory, max(1, least)
    wish = wish_of(inventory, member)
    if is_plain(wish.shape) and not has_room(inventory, wish, least):
        return ()
    found = spots_for(inventory, wish, most)
    return found if len(found) >= least else ()


def fits(inventory: Inventory, wish: Wish, count: int) -> bool:
    """Whether so many workers find room; changes nothing in the end."""
    if is_plain(wish.shape):
        return has_room(inventory, wish, count)
    return len(spots_for(inventory, wish, count)) >= count


def is_plain(shape: WorkerShape) -> bool:
    """Whether nothing but whole devices counts for it, one host being as good as another."""
    return bool(shape.devices) and not (shape.cpu or shape.memory_bytes or shape.spread)


def spots_for(inventory: Inventory, wish: Wish, most: int) -> tuple[Spot, ...]:
    """Choose spots for up to so many workers; changes nothing in the end."""
    shape = wish.shape
    if is_plain(shape):
        return best_fit(inventory, wish, most)
    if shape.spread:
        return _gathered(inventory, wish, most, _apart)
    return _gathered(inventory, wish, most, _part if shape.share else _bundle)


def _gathered(inventory: Inventory, wish: Wish, most: int, find: _Finder) -> tuple[Spot, ...]:
    """Find spots again and again, each time as if those found before were held."""
    found, taken = list[Spot](), 0
    while True:
        new = find(inventory, wish, most - len(found))
        found += new
        if not new or len(found) >= most:
            break
        for spot in found[taken:]:
            inventory.take(wish.shape, spot, wish.sharer)
        taken = len(found)
        wish = wish.with_workers_in(inventory, new[0].bay)
    for spot in reversed(found[:taken]):
        inventory.give(wish.shape, spot)
    return tuple(found)


def _bundle(inventory: Inventory, wish: Wish, left: int) -> Sequence[Spot]:
    """As many workers as fit on one host at once, of whole devices or of none."""
    might_fit = left * wish.shape.devices < len(inventory.by_free)
    found = _together(inventory, wish, left) if might_fit else ()
    if found or left == 1:
        return found
    room = inventory.scores.roomiest(wish.among, lambda bay: inventory.room(bay, wish.shape))
    return _together(inventory, wish, min(left, room)) if room else ()


def _together(inventory: Inventory, wish: Wish, count: int) -> Sequence[Spot]:
    """So many workers on one host: they are as one worker that needs so much more."""
    found = wish.cheapest(inventory.scores.ranking(_times(wish.shape, count)))
    return spots_in(inventory, found[1], count, wish.shape.devices) if found else ()


def _times(shape: WorkerShape, count: int) -> WorkerShape:
    return shape._replace(
        devices=shape.devices * count,
        cpu=shape.cpu * count,
        memory_bytes=shape.memory_bytes * count,
    )


def _part(inventory: Inventory, wish: Wish, _: int) -> Sequence[Spot]:
    """A part of a device: of one that the claim's people share already, if nobody else may.

    What is left of such a device is of no use to others. Where anybody may share it, it is weighed
    against every other place.
    """
    spot = _tightest(inventory, wish) if wish.sharer else None
    if spot is not None:
        return (spot,)
    shared = not wish.sharer
    if not shared and not any(bays & wish.among for bays in inventory.by_free[1:]):
        return ()
    found = wish.cheapest(inventory.scores.ranking(wish.shape, shared=shared))
    if found is None:
        return ()
    cost, bay = found
    devices = inventory.choose(bay, 1) if cost.opens else _with_left(inventory, bay, cost.left)
    return (Spot(bay, devices, wish.shape.share),)


def _tightest(inventory: Inventory, wish: Wish) -> Spot | None:
    """The device with the smallest part left that is enough, of those that its people share."""
    shape = wish.shape
    for tier in wish.tiers():
        fitting = [
            (left, number, position)
            for number in bits(tier & inventory.shared_by.get(wish.sharer, 0))
            for position, left in inventory.bays[number].parts_of(wish.sharer, shape.share)
            if inventory.room(number, shape)
        ]
        if fitting:
            _, number, position = min(fitting)
            return Spot(number, 1 << position, shape.share)
    return None


def _with_left(inventory: Inventory, bay: int, left: int) -> int:
    parts = inventory.bays[bay].open_parts()
    return 1 << min(position for position, free in parts if free == left)


def _apart(inventory: Inventory, wish: Wish, _: int) -> Sequence[Spot]:
    """One worker on a host where the claim has none yet; once there is no such host, anywhere."""
    find = _part if wish.shape.share else _bundle
    elsewhere = wish._replace(among=wish.among & ~wish.own, own=0, racks=0)
    return find(inventory, elsewhere, 1) or find(inventory, wish._replace(own=0, racks=0), 1)
