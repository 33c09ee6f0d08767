"""Whose workers have to go so that a claim fits: the search that reclaim, rank and moves share.

Workers are looked for one at a time: for each, as few others as possible on one host, in the order
in which they may be asked. What the search has chosen before it keeps. After the scenario solver of
NVIDIA/KAI-Scheduler.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .bounds import stops
from .inventory import Spot
from .ledger import Ledger, Member
from .spots import place


class Piece(NamedTuple):
    """Workers of one claim that can only go together: one of its surplus, or all of its rest."""

    member: Member
    spots: tuple[Spot, ...]
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """What makes a claim fit.

    Attributes:
        taken: Who gives what back, in the order in which it was asked for.
        moved: Who goes elsewhere instead, and where.
        spots: Where the claimant's workers go.
    """

    taken: tuple[Piece, ...]
    moved: tuple[tuple[Piece, tuple[Spot, ...]], ...]
    spots: tuple[Spot, ...]


Judge = Callable[[Sequence[Piece], Sequence[Piece]], bool]
"""Whether these pieces may be taken while those are only moved."""


@dataclass(slots=True)
class _Search:
    ledger: Ledger
    claimant: Member
    judge: Judge
    may_move: bool
    chosen: list[Piece] = field(default_factory=list)


def make_room(
    ledger: Ledger,
    claimant: Member,
    pieces: Callable[[], Iterable[Piece]],
    judge: Judge,
    *,
    may_move: bool,
) -> Room | None:
    """Find whose workers have to go so that the claimant gets what it needs; changes nothing.

    Args:
        ledger: The books.
        claimant: Who needs room.
        pieces: Gives those who may be asked, in that order, anew at each call.
        judge: Says whether a set of them may be asked.
        may_move: Whether they may be placed elsewhere instead.
    """
    search = _Search(ledger, claimant, judge, may_move)
    room = None
    for count in range(1, claimant.needs + 1):
        room = _try(search, count, []) or _with_more(search, count, pieces())
        if room is None:
            return None
        search.chosen = [*room.taken, *(piece for piece, _ in room.moved)]
    return room


def _with_more(search: _Search, count: int, pieces: Iterable[Piece]) -> Room | None:
    """Ask one more after the other; of those asked so far, only whoever is on one host."""
    asked: list[Piece] = []
    known = {(id(piece.member), spot) for piece in search.chosen for spot in piece.spots}
    for piece in pieces:
        if any((id(piece.member), spot) in known for spot in piece.spots):
            continue
        asked.append(piece)
        for host in _hosts(search.ledger, piece):
            here = [other for other in asked if host in _hosts(search.ledger, other)]
            if room := _try(search, count, here):
                return room
    return None


def _hosts(ledger: Ledger, piece: Piece) -> tuple[int, ...]:
    return tuple(sorted({ledger.inventory.bays[spot.bay].host for spot in piece.spots}))


def _try(search: _Search, count: int, more: Sequence[Piece]) -> Room | None:
    """Whether so many workers fit when those chosen and these go; the books are as before after."""
    ledger, mark = search.ledger, search.ledger.mark()
    gone = [*search.chosen, *more]
    for piece in gone:
        ledger.take(piece.member, piece.spots)
    room = _placed(search, count, gone)
    ledger.roll_back(mark)
    # The rule looks at what was held before anybody gave anything back.
    if room is None or not search.judge(room.taken, [piece for piece, _ in room.moved]):
        return None
    return room


def _placed(search: _Search, count: int, gone: list[Piece]) -> Room | None:
    ledger, claimant = search.ledger, search.claimant
    spots = _places(ledger, claimant, count)
    if not spots:
        return None
    spots, gone = _without_the_spared(search, count, spots, gone)
    ledger.grant(claimant, spots)
    moved = tuple(_moved(search, gone)) if search.may_move else ()
    went = {id(piece) for piece, _ in moved}
    return Room(tuple(piece for piece in gone if id(piece) not in went), moved, spots)


def _places(ledger: Ledger, member: Member, count: int) -> tuple[Spot, ...]:
    """Where so many workers of a claim go now; none if there is no room or it may not."""
    if stops(ledger, member, count) is not None:
        return ()
    return place(ledger, member, count, count)


def _without_the_spared(
    search: _Search, count: int, spots: tuple[Spot, ...], gone: list[Piece]
) -> tuple[tuple[Spot, ...], list[Piece]]:
    """Leave out whoever need not go after all; the last to be asked is the first to be spared."""
    ledger, needed = search.ledger, []
    for piece in reversed(gone):
        ledger.put_back(piece.member, piece.spots)
        if found := _places(ledger, search.claimant, count):
            spots = found
        else:
            ledger.take(piece.member, piece.spots)
            needed.append(piece)
    return spots, needed[::-1]


def _moved(search: _Search, gone: Sequence[Piece]) -> Iterator[tuple[Piece, tuple[Spot, ...]]]:
    """Those who fit elsewhere when the claimant has its room; the last to be asked first."""
    ledger = search.ledger
    for piece in reversed(gone):
        count = len(piece.spots)
        if spots := _places(ledger, piece.member, count):
            ledger.grant(piece.member, spots)
            yield piece, spots


def pieces_of(member: Member) -> Iterator[Piece]:
    """What a claim can give back, in order: its surplus worker by worker, then all of the rest."""
    rest = len(member.spots) - member.surplus
    for spot in reversed(member.spots[rest:]):
        yield Piece(member, (spot,))
    if rest:
        yield Piece(member, tuple(member.spots[:rest]), is_rest=True)
