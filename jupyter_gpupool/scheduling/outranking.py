"""Within one queue: a claim of higher priority gets what those of lower priority hold."""

from .ledger import Ledger, Member
from .making_room import Room, make_room
from .protected import is_protected
from .victims import asked_in_turn


def outrank_for(ledger: Ledger, claimant: Member) -> Room | None:
    """Find what claims of lower priority in a claimant's own queue have to give back for it."""
    givers = [m for m in ledger.members.values() if _may_be_asked(ledger, claimant, m)]
    if not givers:
        return None
    return make_room(
        ledger,
        claimant,
        lambda: asked_in_turn(ledger, givers),
        lambda *_: True,
        may_move=ledger.rules.may_move,
    )


def _may_be_asked(ledger: Ledger, claimant: Member, member: Member) -> bool:
    if not member.spots or member.leaf != claimant.leaf or member is claimant:
        return False
    if member.view.priority >= claimant.view.priority:
        return False
    return not is_protected(ledger, member, claimant)
