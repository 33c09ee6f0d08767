"""Within one queue: a claim of higher priority gets what those of lower priority hold."""

from collections.abc import Iterator

from .ledger import Member
from .making_room import Room, make_room
from .pieces import Piece
from .protected import is_protected
from .victims import Holders


def outrank_for(holders: Holders, claimant: Member) -> Room | None:
    """Find what claims of lower priority in a claimant's own queue have to give back for it."""
    if claimant.leaf not in holders.members:
        return None
    ledger, pieces = holders.ledger, _outranked(holders, claimant)
    return make_room(ledger, claimant, pieces, lambda *_: True, may_move=ledger.rules.may_move)


def _outranked(holders: Holders, claimant: Member) -> Iterator[Piece]:
    for piece in holders.pieces(claimant.leaf):
        member = piece.member
        if member is claimant or member.view.priority >= claimant.view.priority:
            continue
        if not is_protected(holders.ledger, member, claimant):
            yield piece
