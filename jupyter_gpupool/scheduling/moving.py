"""Fragmentation repair: a gang that fits in total, but not on hosts, fits if some claims move.

Nobody loses a worker: each claim that is asked is placed again elsewhere.
"""

from .ledger import Member
from .making_room import Room, make_room
from .protected import is_protected
from .victims import Holders, asked_in_turn


def move_for(holders: Holders, claimant: Member) -> Room | None:
    """Find which claims have to go elsewhere so that a claimant fits, if any such few do."""
    ledger = holders.ledger
    rules, wanted = ledger.rules, claimant.needs * claimant.view.worker.thousandths
    if not rules.may_move or claimant.view.firm or ledger.inventory.free_thousandths() < wanted:
        return None
    pieces = (
        piece
        for piece in asked_in_turn(holders, holders.below)
        if piece.member is not claimant and not is_protected(ledger, piece.member, claimant)
    )
    return make_room(
        ledger,
        claimant,
        pieces,
        lambda taken, moved: not taken and moved <= rules.most_moved,
        may_move=True,
    )
