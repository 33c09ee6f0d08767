"""Fragmentation repair: a gang that fits in total, but not on hosts, fits if some claims move.

Nobody loses a worker: each claim that is asked is placed again elsewhere.
"""

from .ledger import Member
from .making_room import Room, make_room
from .protected import is_protected
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
    pieces = (
        piece
        for piece in asked_in_turn(holders, holders.below)
        if piece.member is not claimant and not is_protected(ledger, piece.member, claimant)
    )
    room = make_room(
        ledger,
        claimant,
        pieces,
        lambda taken, moved: not taken and moved <= rules.most_moved,
        may_move=True,
    )
    return holders.found((move_for, shape), count, room)
