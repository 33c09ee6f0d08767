"""Fragmentation repair: a gang that fits in total, but not on hosts, fits if some claims move.

Nobody loses a worker: each claim that is asked is placed again elsewhere. So only those are asked
for whom there is room elsewhere now; moves that wait for one another are not looked for.
"""

from collections.abc import Iterator

from .ledger import Ledger, Member
from .making_room import Room, make_room
from .protected import is_protected
from .spots import place
from .victims import Holders, asked_in_turn


def might_move(holders: Holders, claimant: Member) -> bool:
    """Whether enough is free in total, and moves are allowed."""
    ledger = holders.ledger
    wanted = claimant.needs * claimant.view.worker.thousandths
    if not ledger.rules.may_move or claimant.view.firm:
        return False
    return ledger.inventory.free_thousandths() >= wanted


def move_for(holders: Holders, claimant: Member) -> Room | None:
    """Find which claims have to go elsewhere so that a claimant fits, if any such few do."""
    ledger = holders.ledger
    rules, count, shape = ledger.rules, claimant.needs, claimant.view.worker
    if not might_move(holders, claimant):
        return None
    if not holders.may_search((move_for, shape), count):
        return None
    movable = {member.view.id for member in _movable(ledger, claimant)}
    queues = {queue for one in movable for queue in ledger.members[one].path}
    asked = asked_in_turn(holders, lambda queue: queues.intersection(holders.below(queue)))
    pieces = (piece for piece in asked if piece.member.view.id in movable)
    room = make_room(
        ledger,
        claimant,
        pieces,
        lambda taken, moved: not taken and moved <= rules.most_moved,
        may_move=True,
    )
    return holders.found((move_for, shape), count, room)


def _movable(ledger: Ledger, claimant: Member) -> Iterator[Member]:
    """Those who may be asked for a claim and for whom, or for a part of whom, there is room."""
    has_room: dict[tuple[int, int], bool] = {}
    for member in ledger.members.values():
        if not member.spots or member is claimant or is_protected(ledger, member, claimant):
            continue
        count = 1 if member.surplus else len(member.spots)
        alike = member.alike, count
        if alike not in has_room:
            has_room[alike] = bool(place(ledger, member, count, count))
        if has_room[alike]:
            yield member
