"""Within one queue: a claim of higher priority gets what those of lower priority hold."""

from collections.abc import Iterator

from .ledger import Member
from .making_room import Room, make_room
from .most_given import devices_in, might_be_enough
from .pieces import Piece
from .protected import is_protected
from .victims import Holders


def might_outrank(holders: Holders, claimant: Member) -> bool:
    """Whether anybody of its queue that holds something ranks below a claim."""
    return holders.lowest_priority(claimant.leaf) < claimant.view.priority


def outrank_for(holders: Holders, claimant: Member) -> Room | None:
    """Find what claims of lower priority in a claimant's own queue have to give back for it."""
    ledger, count, view = holders.ledger, claimant.needs, claimant.view
    grows = claimant.has >= view.minimum
    if not might_outrank(holders, claimant):
        return None
    kind = (outrank_for, claimant.leaf, view.worker, view.priority, grows)
    if not holders.may_search(kind, count):
        return None
    pieces = list(_outranked(holders, claimant, grows=grows))
    if not might_be_enough(ledger, claimant, devices_in(ledger, claimant, pieces)):
        return holders.found(kind, count, None)
    may_move = ledger.rules.may_move
    room = make_room(ledger, claimant, iter(pieces), lambda *_: True, may_move=may_move)
    return holders.found(kind, count, room)


def _outranked(holders: Holders, claimant: Member, *, grows: bool) -> Iterator[Piece]:
    for piece in holders.pieces(claimant.leaf):
        member = piece.member
        if member is claimant or member.view.priority >= claimant.view.priority:
            continue
        # To grow is no reason to stop what is in use.
        if piece.is_rest and grows and not member.view.idle:
            continue
        if not is_protected(holders.ledger, member, claimant):
            yield piece
