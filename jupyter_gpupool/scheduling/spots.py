"""Where the workers of one claim go: as few hosts as can be, and the smallest gap that fits.

Called by every step of a pass. The best fit on one host leaves large hosts whole for large gangs;
only a claim that fits on no single host is spread, over the emptiest first.
"""

from collections.abc import Iterator

from .bits import bits, lowest
from .inventory import Inventory, Spot
from .ledger import Ledger, Member


def place(ledger: Ledger, member: Member, least: int, most: int) -> tuple[Spot, ...]:
    """Choose between `least` and `most` spots for workers of a claim, or none if there are too few.

    Changes nothing in the end.
    """
    shape = member.view.worker
    if shape.devices and not (shape.cpu or shape.memory_bytes or shape.spread):
        found = tuple(_whole(ledger.inventory, member, most))
    else:
        found = _one_by_one(ledger, member, most)
    return found if len(found) >= max(1, least) else ()


def _whole(inventory: Inventory, member: Member, most: int) -> Iterator[Spot]:
    """Spots of whole devices where nothing else of the host counts."""
    shape, left = member.view.worker, most
    each, open_bays = shape.devices, inventory.accepting(shape)
    near = _near(inventory, member)
    while left:
        bay = _best_bay(inventory.by_free, open_bays, near, left * each, each)
        if bay < 0:
            return
        open_bays &= ~(1 << bay)
        near |= inventory.neighbours(bay)
        count = min(left, inventory.bays[bay].whole.bit_count() // each)
        left -= count
        yield from _spots_in(inventory, bay, count, each)


def _best_bay(by_free: list[int], accepted: int, near: int, wanted: int, each: int) -> int:
    """The bay with the fewest free devices that holds all that is wanted, else the emptiest."""
    for free in range(wanted, len(by_free)):
        if found := by_free[free] & accepted:
            return lowest(found & near or found)
    for free in range(min(wanted, len(by_free)) - 1, each - 1, -1):
        if found := by_free[free] & accepted:
            return lowest(found & near or found)
    return -1


def _spots_in(inventory: Inventory, bay: int, count: int, each: int) -> Iterator[Spot]:
    chosen = inventory.choose(bay, count * each)
    positions = list(bits(chosen))
    for start in range(0, count * each, each):
        yield Spot(bay, sum(1 << position for position in positions[start : start + each]))


def _near(inventory: Inventory, member: Member) -> int:
    """Bits of the bays that its data, or workers that it has, are near to."""
    near = 0
    for host_id in member.view.near:
        number = inventory.host_number(host_id)
        if number is not None:
            near |= sum(1 << bay for bay in inventory.bays_of(number))
    for spot in member.spots:
        near |= 1 << spot.bay | inventory.neighbours(spot.bay)
    return near


def _one_by_one(ledger: Ledger, member: Member, most: int) -> tuple[Spot, ...]:
    """Spots where cores, memory or parts of devices count: each is taken before the next one."""
    mark, used = ledger.mark(), 0
    found: list[Spot] = []
    while len(found) < most:
        spot = _next(ledger.inventory, member, used)
        if spot is None:
            break
        ledger.grant(member, (spot,))
        found.append(spot)
        used |= 1 << spot.bay
    ledger.roll_back(mark)
    return tuple(found)


def _next(inventory: Inventory, member: Member, used: int) -> Spot | None:
    shape = member.view.worker
    accepted = inventory.accepting(shape)
    if shape.spread and (unused := accepted & ~used):
        accepted = unused
    if shape.share:
        return _part(inventory, member, accepted)
    near = _near(inventory, member) | used
    for free in range(shape.devices, len(inventory.by_free)):
        found = inventory.by_free[free] & accepted
        for bay in (*bits(found & near), *bits(found & ~near)):
            if inventory.room(bay, shape) > 0:
                devices = inventory.choose(bay, shape.devices) if shape.devices else 0
                return Spot(bay, devices)
    return None


def _part(inventory: Inventory, member: Member, accepted: int) -> Spot | None:
    """The device already held in part that fits most tightly, else a whole one on a full host."""
    shape, best = member.view.worker, None
    for number in bits(inventory.with_parts & accepted):
        if inventory.room(number, shape) <= 0:
            continue
        bay = inventory.bays[number]
        for position, left in bay.parts.items():
            if left >= shape.share and bay.sharers[position] == member.sharer:
                key = (left, number, position)
                best = key if best is None or key < best else best
    if best is not None:
        return Spot(best[1], 1 << best[2], shape.share)
    for free in range(1, len(inventory.by_free)):
        for number in bits(inventory.by_free[free] & accepted):
            if inventory.room(number, shape) > 0:
                return Spot(number, inventory.choose(number, 1), shape.share)
    return None
