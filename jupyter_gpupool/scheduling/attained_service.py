"""Least attained service: guarantees first, then whoever has held the fewest device-seconds.

The pass for `surplus_order = least_attained_service`. What stays within a queue's guarantee is
served first; then all queues are served as one, by level of attained service and, within a level,
by priority and age. A claim that finds no place makes claims of higher levels hibernate. Nobody has
to know how long claims take, and where many are short and a few very long it comes near the best
that knowing it could do. Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep
Learning", NSDI 2019, section 3.2.

Called by `rounds.decide` on books made for one pass, and by the simulator on books that live on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from heapq import heapify, heappop, heappush

from .bounds import Hindrance, stops
from .decisions import Constraint, Decisions
from .giving_way import room_for
from .inventory import Spot
from .kept import Kept
from .ledger import Member
from .making_room import Room
from .may_give import stays_inside
from .served import Served
from .service_books import ServiceBooks
from .service_decisions import ServiceDecisions
from .service_line import Entry, Group, Likeness
from .shape import WorkerShape
from .spots import place


class _Met(Enum):
    """What a claim met when its turn came."""

    NOTHING = auto()
    FREE = auto()
    ROOM = auto()


@dataclass(slots=True, eq=False)
class _Pass:
    """One pass.

    Attributes:
        kept: What is kept for bookings; None if nothing is.
        takes: Whether others may be asked to give.
        free: Thousandths of devices that nobody holds, brought up to date after every change.
        too_big: By shape, the smallest number of workers for which nothing free was enough.
    """

    books: ServiceBooks
    made: ServiceDecisions
    kept: Kept | None = None
    takes: bool = True
    free: int = 0
    too_big: dict[WorkerShape, int] = field(default_factory=dict)


def decide(books: ServiceBooks, kept: Kept | None = None, *, takes: bool = True) -> Decisions:
    """Serve whoever's turn it is, and enter it in the books, until nobody more can be served.

    Args:
        books: Claims and devices.
        kept: What is kept for bookings, if anything is; its queues may have it.
        takes: Whether others may be asked to give.
    """
    kept = kept if kept is not None and kept.reservations else None
    one = _Pass(books, ServiceDecisions(books.ledger), kept, takes)
    _keep_promises(one)
    one.free = books.ledger.inventory.free_thousandths()
    while _walk(one):
        pass
    books.settle()
    return one.made.decisions()


def hindered(books: ServiceBooks, kept: Kept) -> Iterator[Hindrance]:
    """What keeps each claim that still waits, in the order in which they are served."""
    ledger = books.ledger
    line = sorted(
        ((_rank(books, group.likeness, entry), entry.served.member))
        for group in books.line.groups()
        for entry in group.waiting()
    )
    for _, member in line:
        hindrance = stops(ledger, member, member.needs)
        yield hindrance or Hindrance(member, kept.constraint(member, member.needs))


def _keep_promises(one: _Pass) -> None:
    for member in one.books.promised():
        if one.books.ledger.may_fulfil(member):
            one.made.grant(member, tuple(member.promised))
            one.books.fulfil(member)


def _walk(one: _Pass) -> bool:
    """Ask each group in its turn; whether another walk may serve more."""
    books, served_any = one.books, False
    line = [
        (_rank_of(books, group), group) for group in books.line.groups() if _has_chance(one, group)
    ]
    heapify(line)
    while line:
        rank, group = heappop(line)
        if (rank_now := _rank_of(books, group)) != rank:
            # Its queue has used its guarantee up since.
            heappush(line, (rank_now, group))
            continue
        met = _serve(one, group)
        served_any |= met is not _Met.NOTHING
        if met is _Met.ROOM:
            # Who gave may fit elsewhere, and its queue be within its guarantee: all may be new.
            return True
        # If the first of a group finds nothing, the others do not either.
        if met is _Met.FREE and group.first() is not None:
            heappush(line, (_rank_of(books, group), group))
    return served_any


_Rank = tuple[bool, bool, int, int, float, str]


def _rank_of(books: ServiceBooks, group: Group) -> _Rank:
    return _rank(books, group.likeness, group.entries[0])


def _rank(books: ServiceBooks, likeness: Likeness, entry: Entry) -> _Rank:
    """Minimum before growth, guarantees before surplus, then level, priority and age."""
    member = entry.served.member
    beyond = not stays_inside(books.ledger, member, member.path[-1])
    return (likeness.grows, beyond, likeness.level, entry.urgency, entry.since_s, entry.claim_id)


def _has_chance(one: _Pass, group: Group) -> bool:
    """Whether what is free, and what others could give at the very most, may be enough.

    While a pool is full of claims that keep what they have, this is all that a group costs.
    """
    needed = group.likeness.thousandths
    if one.kept is not None:
        return True  # it may be one of those for whom something is kept
    if needed <= one.free and not _is_too_big(one, group.likeness):
        return True
    given = _given_at_most(one, group)
    return given > 0 and needed <= one.free + given


def _given_at_most(one: _Pass, group: Group) -> int:
    likeness = group.likeness
    if likeness.grows or not one.takes:
        return 0
    path = group.entries[0].served.member.path
    return one.books.holders.at_most(path, likeness.level, likeness.thousandths)


def _is_too_big(one: _Pass, likeness: Likeness) -> bool:
    """Whether nothing free was enough for as many workers of the same shape before."""
    return likeness.needs >= one.too_big.get(likeness.worker, likeness.needs + 1)


def _serve(one: _Pass, group: Group) -> _Met:
    """Serve the first of a group from what is free, else let others give way for it."""
    served = group.entries[0].served
    member, ledger = served.member, one.books.ledger
    hindrance = stops(ledger, member, member.needs)
    if hindrance is None and _serve_from_free(one, group.likeness, member):
        return _Met.FREE
    # What claims hold for good inside their guarantee, nobody gives.
    if hindrance is not None and hindrance.constraint is Constraint.GUARANTEE:
        return _Met.NOTHING
    if not _given_at_most(one, group):
        return _Met.NOTHING
    room = _room(one, served)
    if room is None:
        return _Met.NOTHING
    _enter(one, member, room)
    return _Met.ROOM


def _room(one: _Pass, served: Served) -> Room | None:
    ledger, holders = one.books.ledger, one.books.holders
    if one.kept is None:
        return room_for(ledger, holders, served)
    return one.kept.room(served.member, lambda: room_for(ledger, holders, served))


def _placed(one: _Pass, likeness: Likeness, member: Member) -> tuple[Spot, ...]:
    """Free spots for a claim, of what is kept too if it may have that."""
    is_too_big, needs = _is_too_big(one, likeness), likeness.needs
    if one.kept is not None:
        return one.kept.place(member, needs, is_too_big=is_too_big)
    return () if is_too_big else place(one.books.ledger, member, needs, needs)


def _serve_from_free(one: _Pass, likeness: Likeness, member: Member) -> bool:
    spots = _placed(one, likeness, member)
    if not spots:
        # Who is too big now is too big until somebody gives way.
        needs = likeness.needs
        one.too_big[likeness.worker] = min(needs, one.too_big.get(likeness.worker, needs))
        return False
    one.made.grant(member, spots)
    one.books.grant(member, spots)
    one.free = one.books.ledger.inventory.free_thousandths()
    return True


def _enter(one: _Pass, claimant: Member, room: Room) -> None:
    books = one.books
    for piece in room.taken:
        is_owed = books.level(piece.member) <= books.level(claimant)
        books.take(piece)
        one.made.take(piece, claimant, is_owed=is_owed)
    one.made.promise(claimant, room.spots)
    books.grant(claimant, room.spots)
    one.free = books.ledger.inventory.free_thousandths()
    one.too_big.clear()
    if one.kept is not None:
        one.kept.freed()
