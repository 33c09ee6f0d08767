"""Fragmentation repair: a gang that fits in total, but not on hosts, fits if some claims move.

Nobody loses a worker: each claim that is asked is placed again elsewhere. So only those are asked
for whom there is room elsewhere now, and who can hibernate on their way there; moves that wait for
one another are not looked for.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .ledger import Ledger, Member
from .making_room import Room, make_room
from .protected import is_protected
from .spots import place
from .victims import Holders, asked_in_turn

if TYPE_CHECKING:
    from jupyter_gpupool.pool.ids import ClaimId

_MOST_TOLD = 8
"""For so many kinds of gangs a pass looks for moves that are only told: each costs a search."""


def might_move(holders: Holders, claimant: Member) -> bool:
    """Whether enough is free in total, and moves are allowed."""
    return holders.ledger.rules.may_move and _has_enough(holders.ledger, claimant)


def move_for(holders: Holders, claimant: Member) -> Room | None:
    """Find which claims have to go elsewhere so that a claimant fits, if any such few do."""
    if not might_move(holders, claimant):
        return None
    shape, count = claimant.view.worker, claimant.needs
    if not holders.may_search((move_for, shape), count):
        return None
    return holders.found((move_for, shape), count, _room_for(holders, claimant))


class Untaken:
    """Moves that a policy does not let be made, as whoever waits is told of them.

    Args:
        ledger: The books as a pass leaves them, with nothing kept from anybody.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._holders: Holders | None = None
        self._known: dict[tuple[int, int], int] = {}
        self._searches_left = _MOST_TOLD

    def count_for(self, claimant: Member) -> int:
        """How many claims would have to move for a claimant to fit; 0 if that would not do."""
        rules = self._ledger.rules
        if rules.may_move or not rules.tells_moves or not _may_have_others_move(claimant):
            return 0
        # Thousands may be in line, and most of them alike.
        kind = claimant.alike, claimant.needs
        if kind not in self._known:
            self._known[kind] = self._looked_for(claimant)
        return self._known[kind]

    def _looked_for(self, claimant: Member) -> int:
        if not self._searches_left or not _has_enough(self._ledger, claimant):
            return 0
        self._searches_left -= 1
        self._holders = self._holders or Holders(self._ledger)
        room = _room_for(self._holders, claimant)
        moved: set[ClaimId] = set() if room is None else {p.member.view.id for p, _ in room.moved}
        return len(moved)


def _may_have_others_move(claimant: Member) -> bool:
    return not claimant.view.firm and claimant.has < claimant.view.minimum


def _has_enough(ledger: Ledger, claimant: Member) -> bool:
    """Whether as much is free in total as a claimant needs to start: nobody moves for growth."""
    if not _may_have_others_move(claimant):
        return False
    wanted = claimant.needs * claimant.view.worker.thousandths
    return ledger.inventory.free_thousandths() >= wanted


def _room_for(holders: Holders, claimant: Member) -> Room | None:
    ledger = holders.ledger
    movable = {member.view.id for member in _movable(ledger, claimant)}
    queues = {queue for one in movable for queue in ledger.members[one].path}
    asked = asked_in_turn(holders, lambda queue: queues.intersection(holders.below(queue)))
    pieces = (piece for piece in asked if piece.member.view.id in movable)
    return make_room(ledger, claimant, pieces, lambda taken, _: not taken, may_move=True)


def _movable(ledger: Ledger, claimant: Member) -> Iterator[Member]:
    """Those who may be asked for a claim and for whom, or for a part of whom, there is room."""
    has_room: dict[tuple[int, int], bool] = {}
    for member in ledger.members.values():
        if not member.spots or member is claimant or is_protected(ledger, member, claimant):
            continue
        if not (member.surplus or member.view.can_hibernate):
            continue
        count = 1 if member.surplus else len(member.spots)
        alike = member.alike, count
        if alike not in has_room:
            has_room[alike] = bool(place(ledger, member, count, count))
        if has_room[alike]:
            yield member
