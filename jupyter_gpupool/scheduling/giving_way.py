"""Who gives way to a claim that has attained less service: claims of higher levels, one host each.

Called by `AttainedService` for a claim that finds no place. Nobody gives what its queue is
guaranteed to a claim of another queue, unless none is left that has more; a claim within its
queue's guarantee may ask whoever holds more than theirs, whatever they have attained.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .bits import bits
from .inventory import Spot
from .ledger import Ledger, Member, Turn
from .making_room import Room
from .pieces import Piece
from .protected import is_protected
from .served import Served
from .service_holders import ServiceHolders
from .spots import place


class _Offer(NamedTuple):
    """What some could give on one host, and at what harm.

    Attributes:
        stops: Whether anybody has to stop and not just to shrink.
        level: The lowest that gives, negated: who has attained most gives first.
        thousandths: All that is given, elsewhere too.
    """

    stops: bool
    level: int
    thousandths: int
    claims: int
    bay: int
    pieces: tuple[Piece, ...]


@dataclass(slots=True, eq=False)
class _Search:
    """One search. The books are changed while it goes on, and rolled back at its end.

    Attributes:
        guaranteed: The queues of the claimant inside whose guarantee it stays.
        taken: Those who have to give.
        over: The queue whose limit stands in the way, if any: only from below it helps to take.
    """

    ledger: Ledger
    holders: ServiceHolders
    claimant: Served
    guaranteed: frozenset[int]
    taken: list[Piece] = field(default_factory=list)
    over: int | None = None


def room_for(ledger: Ledger, holders: ServiceHolders, claimant: Served) -> Room | None:
    """Find who has to give so that a claim gets all it needs; changes nothing."""
    member, mark = claimant.member, ledger.mark()
    inside = frozenset(queue for queue in member.path if stays_inside(ledger, member, queue))
    search = _Search(ledger, holders, claimant, inside)
    had, needs = len(member.spots), member.needs
    found = all(_serve_one(search) for _ in range(needs))
    spots = tuple(member.spots[had:])
    ledger.roll_back(mark)
    return Room(tuple(search.taken), (), spots) if found else None


def stays_inside(ledger: Ledger, member: Member, queue: int) -> bool:
    """Whether a queue holds no more than its guarantee once a claim has all it needs."""
    held, guarantee, needs = ledger.held[queue], ledger.guarantee[queue], member.needs
    return all(
        has + amount * needs <= most
        for has, amount, most in zip(held, member.each, guarantee, strict=True)
        if amount
    )


def _serve_one(search: _Search) -> bool:
    """Take from as few as possible on one host what one worker lacks."""
    ledger, member = search.ledger, search.claimant.member
    search.over = ledger.over_limit(member, 1)
    if search.over is None and _place_one(search):
        return True
    offers = (offer for bay in _promising(search) for offer in _offers(search, bay))
    for offer in sorted(offers, key=lambda offer: offer[:-1]):
        mark = ledger.mark()
        for piece in offer.pieces:
            ledger.take(piece.member, piece.spots)
        if ledger.over_limit(member, 1) is None and _place_one(search):
            search.taken += offer.pieces
            return True
        ledger.roll_back(mark)
    return False


def _promising(search: _Search) -> Iterator[int]:
    """The bays where those who may be asked hold enough, their queues' guarantees left aside."""
    inventory, open_in = search.ledger.inventory, search.holders.open_in
    shape = search.claimant.member.view.worker
    level = 0 if search.guaranteed else search.claimant.level + 1
    return (
        bay
        for bay in bits(inventory.accepting(shape))
        if (asked := open_in[bay][level])
        if asked + inventory.bays[bay].whole.bit_count() >= shape.devices
    )


def _place_one(search: _Search) -> bool:
    spots = place(search.ledger, search.claimant.member, 1, 1)
    search.ledger.grant(search.claimant.member, spots)
    return bool(spots)


def _offers(search: _Search, bay: int) -> Iterator[_Offer]:
    """What those in a bay could give: as few as free enough, or one more each time if that varies.

    Only for whole devices, with cores, memory and limits aside, is it known when it is enough.
    """
    shape = search.claimant.member.view.worker
    is_plain = not (shape.share or shape.cpu or shape.memory_bytes) and search.over is None
    lacking = shape.devices - search.ledger.inventory.bays[bay].whole.bit_count()
    freed, chosen, off = 0, list[tuple[Served, Piece]](), dict[tuple[int, int], int]()
    for served, piece in _asked_in_turn(search, bay, lacking):
        if not _keeps_guarantees(search, piece, off):
            continue
        chosen.append((served, piece))
        freed += _devices_in(piece, bay)
        if not is_plain or freed >= lacking:
            yield _offer(chosen, bay)
        if is_plain and freed >= lacking:
            return


def _offer(chosen: Sequence[tuple[Served, Piece]], bay: int) -> _Offer:
    return _Offer(
        stops=any(piece.is_rest for _, piece in chosen),
        level=-min(served.level for served, _ in chosen),
        thousandths=sum(
            len(piece.spots) * piece.member.view.worker.thousandths for _, piece in chosen
        ),
        claims=len({piece.member.view.id for _, piece in chosen}),
        bay=bay,
        pieces=tuple(piece for _, piece in chosen),
    )


def _asked_in_turn(search: _Search, bay: int, lacking: int) -> list[tuple[Served, Piece]]:
    """Those who may be asked: the surplus of all first, then who attained most, then the youngest.

    Of one level, who gives no more than is lacking comes first, and of those the largest.
    """

    def rank(asked: tuple[Served, Piece]) -> tuple[bool, int, bool, int, float, str, Spot]:
        served, piece = asked
        gives, view = _devices_in(piece, bay), served.member.view
        first = (piece.is_rest, -served.level, gives > lacking, -gives)
        return (*first, -view.since_s, view.id, piece.spots[0])

    return sorted(
        (
            (served, piece)
            for served in search.holders.in_bay[bay].values()
            if _may_ask(search, served)
            for piece in _pieces_in(served.member, bay)
        ),
        key=rank,
    )


def _may_ask(search: _Search, served: Served) -> bool:
    member, claimant = served.member, search.claimant
    if not served.is_open or member.turn is not Turn.NONE or member is claimant.member:
        return False
    if served.level <= claimant.level:
        if not search.guaranteed:
            return False
        mine, theirs = sides(claimant.member.path, member.path)
        if mine == theirs or mine not in search.guaranteed:
            return False
    if search.over is not None and search.over not in member.path:
        return False
    return not is_protected(search.ledger, member, claimant.member)


def _keeps_guarantees(search: _Search, piece: Piece, off: dict[tuple[int, int], int]) -> bool:
    """Whether no queue on the giver's side falls below its guarantee; if so, counts the piece.

    `off` is what was counted before, by queue and kind.
    """
    ledger, member = search.ledger, piece.member
    mine, theirs = sides(search.claimant.member.path, member.path)
    below = member.path[: member.path.index(theirs) + 1] if mine != theirs else ()
    given = [
        (queue, kind, amount * len(piece.spots))
        for queue in below
        for kind, amount in enumerate(member.each)
        if amount
    ]
    for queue, kind, amount in given:
        left = ledger.held[queue][kind] - off.get((queue, kind), 0) - amount
        if left < ledger.guarantee[queue][kind]:
            return False
    for queue, kind, amount in given:
        off[queue, kind] = off.get((queue, kind), 0) + amount
    return True


def _pieces_in(member: Member, bay: int) -> Iterator[Piece]:
    """What a claim could give in a bay: workers beyond its minimum, then all it has."""
    here = sorted((spot for spot in member.spots if spot.bay == bay), reverse=True)
    surplus = here[: member.surplus]
    for spot in surplus:
        yield Piece(member, (spot,))
    rest = tuple(sorted(spot for spot in member.spots if spot not in surplus))
    if rest and (len(surplus) < len(here) or not surplus):
        yield Piece(member, rest, is_rest=True)


def _devices_in(piece: Piece, bay: int) -> int:
    return sum(spot.devices.bit_count() for spot in piece.spots if spot.bay == bay)


def sides(mine: Sequence[int], theirs: Sequence[int]) -> tuple[int, int]:
    """The two queues, one of each path, that meet in one parent; the leaf twice if it is one."""
    if mine[-1] != theirs[-1]:
        return mine[-1], theirs[-1]
    pairs = zip(reversed(mine), reversed(theirs), strict=False)
    return next(((one, other) for one, other in pairs if one != other), (mine[0], theirs[0]))
