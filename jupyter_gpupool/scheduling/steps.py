"""The steps of a pass, each on the books as the one before left them.

Taken by `rounds.decide` for all claims, and by `kept_books` for those whose turn it may be.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import NamedTuple

from jupyter_gpupool.pool.ids import ClaimId

from .bounds import Hindrance
from .decisions import Decisions, Grant, Move, Promise
from .ledger import Ledger, Member, Turn
from .making_room import Room
from .moving import might_move, move_for
from .outranking import might_outrank, outrank_for
from .pieces import Piece
from .reclaiming import might_reclaim, reclaim_for
from .victims import Holders
from .waiting_line import Line
from .wording import grant_of, move_of, promise_of, take_of


class Steps(Flag):
    """The steps of a pass; tests take them one by one."""

    GRANT = auto()
    MOVE = auto()
    RECLAIM = auto()
    OUTRANK = auto()
    ALL = GRANT | MOVE | RECLAIM | OUTRANK


class Search(NamedTuple):
    """A way to make room.

    Attributes:
        might: Whether it could find anything for a claim, at a glance.
        find: Find it.
    """

    step: Steps
    might: Callable[[Holders, Member], bool]
    find: Callable[[Holders, Member], Room | None]


SEARCHES = (
    Search(Steps.MOVE, might_move, move_for),
    Search(Steps.RECLAIM, might_reclaim, reclaim_for),
    Search(Steps.OUTRANK, might_outrank, outrank_for),
)


_ASKED = (Turn.GAVE, Turn.MOVED)
"""Who was asked for something in this pass gets nothing more in it."""


@dataclass(slots=True)
class Made:
    """What the steps have decided so far.

    Attributes:
        given: What each claim gives back, and for whom, by claim.
        touched: Whose workers have changed.
    """

    grants: list[Grant] = field(default_factory=list)
    given: dict[ClaimId, list[tuple[Piece, Member]]] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    hindered: list[Hindrance] = field(default_factory=list)
    touched: list[Member] = field(default_factory=list)

    def decisions(self, ledger: Ledger) -> Decisions:
        """All of it as actions."""
        return Decisions(
            grants=tuple(self.grants),
            takes=tuple(take_of(ledger, given) for given in self.given.values()),
            moves=tuple(self.moves),
            promises=tuple(self.promises),
        )


def keep_promises(ledger: Ledger, members: Iterable[Member], made: Made) -> None:
    """Let those of these claims start whose devices have been freed."""
    for member in members:
        if member.promised and ledger.may_fulfil(member):
            made.grants.append(grant_of(ledger, member, member.promised))
            ledger.fulfil(member)
            member.turn = Turn.SERVED
            made.touched.append(member)


def make_room_for_each(
    holders: Holders, waiting: Iterable[Member], search: Search, made: Made
) -> None:
    """Look for room for each who still lacks something, in the order of the line."""
    ledger = holders.ledger
    might = search.might
    lacking = [m for m in waiting if m.needs and m.turn not in _ASKED and might(holders, m)]
    line = Line(ledger, lacking)
    while (leaf := line.leaf()) is not None and not holders.unfinished:
        while (claimant := line.first(leaf)) is not None:
            line.leave(leaf)
            # It may have been asked to give since the line was made.
            room = None if claimant.turn in _ASKED else search.find(holders, claimant)
            if room is not None:
                _enter(ledger, claimant, room, made)
                changed = [claimant, *(piece.member for piece in _gone(room))]
                made.touched += changed
                for member in changed:
                    holders.changed(member)
                break
        line.refresh(leaf)


def _gone(room: Room) -> Iterator[Piece]:
    yield from room.taken
    yield from (piece for piece, _ in room.moved)


def _enter(ledger: Ledger, claimant: Member, room: Room, made: Made) -> None:
    """Enter in the books who gives back, who moves, and what the claimant is promised."""
    for piece in _gone(room):
        ledger.take(piece.member, piece.spots)
        piece.member.turn = Turn.GAVE
    for piece in room.taken:
        made.given.setdefault(piece.member.view.id, []).append((piece, claimant))
    going_on = {piece.member.view.id for piece, _ in room.moved if piece.member.spots}
    ledger.grant(claimant, room.spots)
    ledger.promise(claimant, room.spots)
    claimant.turn = Turn.SERVED
    made.promises.append(promise_of(ledger, claimant, room.spots))
    for piece, spots in room.moved:
        ledger.grant(piece.member, spots)
        piece.member.turn = Turn.MOVED
        goes_on = piece.member.view.id in going_on
        made.moves.append(move_of(ledger, claimant, piece, spots, goes_on=goes_on))
