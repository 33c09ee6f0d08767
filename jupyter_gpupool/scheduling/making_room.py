"""Whose workers have to go so that a claim fits: the search that reclaim, rank and moves share.

Room is made for one worker at a time: others are asked in their order until those on one host free
enough for it. What was chosen for one worker stays chosen for the next. At the end whoever need not
go after all is spared, and the whole is judged again. After the scenario solver of
NVIDIA/KAI-Scheduler.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .amounts import WHOLE_DEVICE
from .bounds import stops
from .inventory import Spot
from .ledger import Ledger, Member
from .pieces import Piece
from .spots import place


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


Judge = Callable[[Sequence[Piece], int], bool]
"""Whether these pieces may be taken for the claimant while so many others are only moved."""

_Moved: TypeAlias = dict[int, tuple[Piece, tuple[Spot, ...]]]
"""Who goes elsewhere, and where, by the identity of the piece."""


@dataclass(slots=True)
class _Search:
    """One search. The books are changed while it goes on, and rolled back at its end.

    Attributes:
        pieces: Those who may be asked, in their order.
        asked: By host, those asked and not chosen.
        chosen: Those who have to go.
    """

    ledger: Ledger
    claimant: Member
    pieces: Iterator[Piece]
    judge: Judge
    may_move: bool
    asked: dict[int, list[Piece]] = field(default_factory=dict)
    chosen: list[Piece] = field(default_factory=list)


def make_room(
    ledger: Ledger,
    claimant: Member,
    pieces: Iterator[Piece],
    judge: Judge,
    *,
    may_move: bool,
) -> Room | None:
    """Find whose workers have to go so that the claimant gets what it needs; changes nothing.

    Args:
        ledger: The books.
        claimant: Who needs room.
        pieces: Gives those who may be asked, in that order.
        judge: Says whether a set of them may be asked.
        may_move: Whether they may be placed elsewhere instead.
    """
    search = _Search(ledger, claimant, pieces, judge, may_move)
    mark, count = ledger.mark(), claimant.needs
    try:
        if all(_place_one(search) or _ask_for_one(search) for _ in range(count)):
            return _settled(search, mark, count)
        return None
    finally:
        ledger.roll_back(mark)


def _place_one(search: _Search) -> bool:
    spots = _places(search.ledger, search.claimant, 1)
    search.ledger.grant(search.claimant, spots)
    return bool(spots)


def _ask_for_one(search: _Search) -> bool:
    """Ask until one more worker fits where those asked on one host go."""
    accepted = search.ledger.inventory.accepting(search.claimant.view.worker)
    for piece in search.pieces:
        for host in _hosts(search.ledger, piece):
            here = search.asked.setdefault(host, [])
            here.append(piece)
            if _might_do(search, host, here, accepted) and _try(search, here):
                return True
    return False


def _hosts(ledger: Ledger, piece: Piece) -> tuple[int, ...]:
    bays = ledger.inventory.bays
    if len(piece.spots) == 1:
        return (bays[piece.spots[0].bay].host,)
    return tuple(sorted({bays[spot.bay].host for spot in piece.spots}))


def _might_do(search: _Search, host: int, here: Sequence[Piece], accepted: int) -> bool:
    """Whether a host could hold a worker if all asked there went: seen without trying."""
    inventory, shape = search.ledger.inventory, search.claimant.view.worker
    bays = inventory.bays_of(host)
    if not any(accepted >> bay & 1 for bay in bays):
        return False
    freed = sum(
        (spot.share or spot.devices.bit_count() * WHOLE_DEVICE)
        for piece in here
        for spot in piece.spots
        if spot.bay in bays
    )
    free = sum(
        bay.whole.bit_count() * WHOLE_DEVICE + sum(left for _, left in bay.open_parts())
        for bay in map(inventory.bays.__getitem__, bays)
    )
    return free + freed >= shape.thousandths


def _try(search: _Search, here: list[Piece]) -> bool:
    """Let these go if one more worker fits then and the judge agrees, sparing who need not."""
    ledger, mark, before = search.ledger, search.ledger.mark(), list(search.chosen)
    for piece in here:
        ledger.take(piece.member, piece.spots)
    spots = _places(ledger, search.claimant, 1)
    if spots:
        spots, gone = _without_the_spared(search, 1, spots, here)
        ledger.grant(search.claimant, spots)
        search.chosen = [*before, *gone]
        if _is_allowed(search, search.chosen):
            _forget(search, gone)
            return True
    search.chosen = before
    ledger.roll_back(mark)
    return False


def _forget(search: _Search, gone: Sequence[Piece]) -> None:
    chosen = set(map(id, gone))
    for host, asked in search.asked.items():
        search.asked[host] = [piece for piece in asked if id(piece) not in chosen]


def _is_allowed(search: _Search, gone: Sequence[Piece]) -> bool:
    moved = _moved(search, gone)
    return search.judge(_taken(gone, moved), len(moved))


def _taken(gone: Sequence[Piece], moved: _Moved) -> tuple[Piece, ...]:
    """Those who lose what they give; whoever loses its minimum keeps nothing beyond it.

    Those of its workers that could only have been moved are taken too, and leave `moved`.
    """
    stopped = [p.member for p in gone if p.is_rest and id(p) not in moved]
    for piece in gone:
        if piece.member in stopped:
            moved.pop(id(piece), None)
    kept = (Piece(member, (spot,)) for member in stopped for spot in member.spots)
    return (*(piece for piece in gone if id(piece) not in moved), *kept)


def _settled(search: _Search, mark: int, count: int) -> Room | None:
    """Place the whole claim anew, spare whoever need not go, and judge what is left."""
    ledger, claimant = search.ledger, search.claimant
    ledger.roll_back(mark)
    for piece in search.chosen:
        ledger.take(piece.member, piece.spots)
    spots = _places(ledger, claimant, count)
    spots, gone = _without_the_spared(search, count, spots, search.chosen)
    gone = [piece for whole in gone for piece in _only_needed(search, count, whole)]
    spots = _places(ledger, claimant, count)
    ledger.grant(claimant, spots)
    moved = _moved(search, gone)
    taken = _taken(gone, moved)
    if not spots or not search.judge(taken, len(moved)):
        return None
    return Room(taken, tuple(moved.values()), spots)


def _without_the_spared(
    search: _Search, count: int, spots: tuple[Spot, ...], gone: Sequence[Piece]
) -> tuple[tuple[Spot, ...], list[Piece]]:
    """Leave out whoever need not go after all; the last to be asked is the first to be spared."""
    ledger, needed = search.ledger, list[Piece]()
    for piece in reversed(gone):
        ledger.put_back(piece.member, piece.spots)
        if found := _places(ledger, search.claimant, count):
            spots = found
        else:
            ledger.take(piece.member, piece.spots)
            needed.append(piece)
    return spots, needed[::-1]


def _only_needed(search: _Search, count: int, piece: Piece) -> tuple[Piece, ...]:
    """Shrink an elastic claim instead of stopping it, if no more of it is needed than its surplus.

    Any of its workers may go, not only the youngest: which one is of use is a matter of place.
    """
    ledger, member = search.ledger, piece.member
    if not piece.is_rest or len(member.spots) + len(piece.spots) <= member.view.minimum:
        return (piece,)
    needed, spared = list[Spot](), list[Spot]()
    for spot in piece.spots:
        ledger.put_back(member, (spot,))
        if _places(ledger, search.claimant, count):
            spared.append(spot)
        else:
            ledger.take(member, (spot,))
            needed.append(spot)
    if len(member.spots) >= member.view.minimum:
        return tuple(Piece(member, (spot,)) for spot in needed)
    ledger.take(member, spared)
    return (piece,)


def _moved(search: _Search, gone: Sequence[Piece]) -> _Moved:
    """Those who fit elsewhere now, by identity; the last to be asked first. Changes nothing.

    No more than the rules allow, and none that would have to hibernate on its way and cannot.
    """
    if not search.may_move:
        return {}
    ledger, mark = search.ledger, search.ledger.mark()
    found: _Moved = {}
    for piece in reversed(gone):
        if len(found) >= ledger.rules.most_moved:
            break
        if piece.is_rest and not piece.member.view.can_hibernate:
            continue
        if spots := _places(ledger, piece.member, len(piece.spots)):
            ledger.grant(piece.member, spots)
            found[id(piece)] = (piece, spots)
    ledger.roll_back(mark)
    return found


def _places(ledger: Ledger, member: Member, count: int) -> tuple[Spot, ...]:
    """Where so many workers of a claim go now; none if there is no room or it may not."""
    if stops(ledger, member, count) is not None:
        return ()
    return place(ledger, member, count, count)
