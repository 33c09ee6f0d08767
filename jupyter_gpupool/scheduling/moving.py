"""Fragmentation repair: a gang that fits in total, but not on hosts, fits if some claims move.

Nobody loses a worker: each claim that is asked is placed again elsewhere.
"""

from .ledger import Ledger, Member
from .making_room import Room, make_room
from .protected import is_protected
from .victims import asked_in_turn


def move_for(ledger: Ledger, claimant: Member) -> Room | None:
    """Find which claims have to go elsewhere so that a claimant fits, if any such few do."""
    if not ledger.rules.may_move or claimant.view.firm or not _fits_in_total(ledger, claimant):
        return None
    movable = [m for m in ledger.members.values() if _may_be_moved(ledger, claimant, m)]
    if not movable:
        return None
    return make_room(
        ledger,
        claimant,
        lambda: asked_in_turn(ledger, movable),
        lambda taken, moved: not taken and len(moved) <= ledger.rules.most_moved,
        may_move=True,
    )


def _fits_in_total(ledger: Ledger, claimant: Member) -> bool:
    free = ledger.inventory.free_thousandths()
    return free >= claimant.needs * claimant.view.worker.thousandths


def _may_be_moved(ledger: Ledger, claimant: Member, member: Member) -> bool:
    if not member.spots or member is claimant:
        return False
    return not is_protected(ledger, member, claimant)
