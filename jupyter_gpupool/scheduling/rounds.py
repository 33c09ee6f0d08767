"""One scheduling pass, step by step: promises kept, what is free, moves, reclaim, and rank.

Called by the manager whenever something may have changed, and by the simulator. Each step looks at
the books as the one before left them. A pass over what it has brought about decides nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from typing import NamedTuple

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.rules import SurplusOrder

from . import attained_service
from .bounds import Hindrance
from .decisions import Constraint, Decisions, Grant, Move, Promise, Waiting
from .granting import grant_from_free
from .ledger import Ledger, Member, Turn
from .making_room import Room
from .moving import might_move, move_for
from .outranking import might_outrank, outrank_for
from .pieces import Piece
from .pool_view import PoolView
from .reasons import freeing, reasons
from .reclaiming import might_reclaim, reclaim_for
from .service_books import ServiceBooks
from .tree_shares import divide_tree
from .victims import Holders
from .waiting_line import Line
from .wording import grant_of, move_of, promise_of, take_of
from .workload import workload_of


class Steps(Flag):
    """The steps of a pass; tests take them one by one."""

    GRANT = auto()
    MOVE = auto()
    RECLAIM = auto()
    OUTRANK = auto()
    ALL = GRANT | MOVE | RECLAIM | OUTRANK


class _Search(NamedTuple):
    """A way to make room.

    Attributes:
        might: Whether it could find anything for a claim, at a glance.
        find: Find it.
    """

    step: Steps
    might: Callable[[Holders, Member], bool]
    find: Callable[[Holders, Member], Room | None]


_SEARCHES = (
    _Search(Steps.MOVE, might_move, move_for),
    _Search(Steps.RECLAIM, might_reclaim, reclaim_for),
    _Search(Steps.OUTRANK, might_outrank, outrank_for),
)


@dataclass(slots=True)
class _Made:
    """What the steps have decided so far.

    Attributes:
        given: What each claim gives back, and for whom, by claim.
    """

    grants: list[Grant] = field(default_factory=list)
    given: dict[ClaimId, list[tuple[Piece, Member]]] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    hindered: list[Hindrance] = field(default_factory=list)


def plan(view: PoolView, steps: Steps = Steps.ALL) -> Decisions:
    """Decide who gets what, who gives what back, and why everybody else waits."""
    ledger = Ledger(view)
    ledger.set_shares(
        divide_tree(
            view.tree, ledger.total, ledger.requests(), view.usage, k=view.rules.usage_weight
        ).shares
    )
    return decide(ledger, steps)


def decide(ledger: Ledger, steps: Steps = Steps.ALL, *, explain: bool = True) -> Decisions:
    """Take the steps of a pass on books whose shares are entered.

    Args:
        ledger: The books; they hold what was decided afterwards.
        steps: Which steps to take.
        explain: Also say why everybody else waits: for thousands it takes as long as the pass.
    """
    if ledger.rules.surplus_order is SurplusOrder.LEAST_ATTAINED_SERVICE:
        return _by_attained_service(ledger, explain=explain)
    made = _Made()
    ledger.inventory.expect(workload_of(ledger.expected.items()))
    _keep_promises(ledger, made)
    waiting = [m for m in ledger.members.values() if m.needs and not m.promised]
    if Steps.GRANT in steps:
        granting = grant_from_free(ledger, waiting)
        made.grants += granting.grants
        made.hindered += granting.hindered
    holders = Holders(ledger)
    for search in _SEARCHES:
        if search.step in steps and not holders.unfinished:
            _make_room_for_each(holders, waiting, search, made)
    return Decisions(
        grants=tuple(made.grants),
        takes=tuple(take_of(ledger, given) for given in made.given.values()),
        moves=tuple(made.moves),
        promises=tuple(made.promises),
        waits=tuple(_waits(ledger, _still_waiting(made.hindered), made.promises))
        if explain
        else (),
        unfinished=holders.unfinished,
    )


def _by_attained_service(ledger: Ledger, *, explain: bool) -> Decisions:
    """Take the one step that this order of the surplus has instead of all others."""
    books = ServiceBooks(ledger)
    made = attained_service.decide(books)
    if not explain:
        return made
    return replace(
        made, waits=tuple(_waits(ledger, attained_service.hindered(books), made.promises))
    )


def _keep_promises(ledger: Ledger, made: _Made) -> None:
    for member in ledger.members.values():
        if member.promised and ledger.may_fulfil(member):
            made.grants.append(grant_of(ledger, member, member.promised))
            ledger.fulfil(member)
            member.turn = Turn.SERVED


def _make_room_for_each(
    holders: Holders, waiting: Sequence[Member], search: _Search, made: _Made
) -> None:
    """Look for room for each who still lacks something, in the order of the line."""
    ledger = holders.ledger
    lacking = (m for m in waiting if m.needs and m.turn is not Turn.GAVE)
    line = Line(ledger, [m for m in lacking if search.might(holders, m)])
    while (leaf := line.leaf()) is not None and not holders.unfinished:
        while (claimant := line.first(leaf)) is not None:
            line.leave(leaf)
            # It may have been asked to give since the line was made.
            room = search.find(holders, claimant) if claimant.turn is not Turn.GAVE else None
            if room is not None:
                _enter(ledger, claimant, room, made)
                for member in (claimant, *(piece.member for piece in _gone(room))):
                    holders.changed(member)
                break
        line.refresh(leaf)


def _gone(room: Room) -> Iterator[Piece]:
    yield from room.taken
    yield from (piece for piece, _ in room.moved)


def _enter(ledger: Ledger, claimant: Member, room: Room, made: _Made) -> None:
    """Enter in the books who gives back, who moves, and what the claimant is promised."""
    for piece in _gone(room):
        ledger.take(piece.member, piece.spots)
        piece.member.turn = Turn.GAVE
    for piece in room.taken:
        made.given.setdefault(piece.member.view.id, []).append((piece, claimant))
    ledger.grant(claimant, room.spots)
    ledger.promise(claimant, room.spots)
    claimant.turn = Turn.SERVED
    made.promises.append(promise_of(ledger, claimant, room.spots))
    for piece, spots in room.moved:
        ledger.grant(piece.member, spots)
        made.moves.append(move_of(ledger, claimant, piece, spots))


def _still_waiting(hindered: Sequence[Hindrance]) -> Iterator[Hindrance]:
    """What the line met, without those for whom room was made afterwards; each claim once."""
    last = {hindrance.member.view.id: hindrance for hindrance in hindered}
    return (h for h in last.values() if h.member.needs)


def _waits(
    ledger: Ledger, hindered: Iterable[Hindrance], promises: Iterable[Promise]
) -> Iterator[Waiting]:
    yield from reasons(ledger, hindered)
    new = {promise.claim_id for promise in promises}
    for promise in promises:
        yield Waiting(
            claim_id=promise.claim_id,
            place=1,
            constraint=Constraint.FREEING,
            reason=promise.reason,
        )
    for member in ledger.members.values():
        if member.promised and member.view.id not in new:
            yield freeing(ledger, member)
