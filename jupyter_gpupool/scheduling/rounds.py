"""One scheduling pass, step by step: promises kept, what is free, moves, reclaim, and rank.

Called by the manager whenever something may have changed, and by the simulator. Each step looks at
the books as the one before left them. A pass over what it has brought about decides nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto

from .decisions import Decisions, Grant, Move, Promise, Take, TakeHow
from .granting import Hindrance, grant_from_free, grant_of
from .inventory import Spot
from .ledger import Ledger, Member
from .making_room import Piece, Room
from .moving import move_for
from .outranking import outrank_for
from .pool_view import PoolView
from .reclaiming import reclaim_for
from .tree_shares import divide_tree
from .waiting_line import Line


class Steps(Flag):
    """The steps of a pass; tests take them one by one."""

    GRANT = auto()
    MOVE = auto()
    RECLAIM = auto()
    OUTRANK = auto()
    ALL = GRANT | MOVE | RECLAIM | OUTRANK


Search = Callable[[Ledger, Member], Room | None]
_SEARCHES: Sequence[tuple[Steps, Search]] = (
    (Steps.MOVE, move_for),
    (Steps.RECLAIM, reclaim_for),
    (Steps.OUTRANK, outrank_for),
)


@dataclass(slots=True)
class _Made:
    """What the steps have decided so far."""

    grants: list[Grant] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)
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


def decide(ledger: Ledger, steps: Steps = Steps.ALL) -> Decisions:
    """Take the steps of a pass on books whose shares are entered."""
    made = _Made()
    for member in ledger.members.values():
        if member.promised and ledger.may_fulfil(member):
            made.grants.append(grant_of(ledger, member, member.promised))
            ledger.fulfil(member)
    waiting = [m for m in ledger.members.values() if m.needs and not m.promised]
    if Steps.GRANT in steps:
        granting = grant_from_free(ledger, waiting)
        made.grants += granting.grants
        made.hindered += granting.hindered
    for step, search in _SEARCHES:
        if step in steps:
            _make_room_for_each(ledger, waiting, search, made)
    return Decisions(
        grants=tuple(made.grants),
        takes=tuple(made.takes),
        moves=tuple(made.moves),
        promises=tuple(made.promises),
    )


def _make_room_for_each(
    ledger: Ledger, waiting: Sequence[Member], search: Search, made: _Made
) -> None:
    """Look for room for each who still lacks something, in the order of the line."""
    line = Line(ledger, [member for member in waiting if member.needs])
    while (claimant := line.pop()) is not None:
        if not claimant.needs:
            continue
        room = search(ledger, claimant)
        if room is not None:
            _enter(ledger, claimant, room, made)
            line.changed(claimant.leaf)


def _enter(ledger: Ledger, claimant: Member, room: Room, made: _Made) -> None:
    """Enter in the books who gives back, who moves, and what the claimant is promised."""
    for piece in (*room.taken, *(piece for piece, _ in room.moved)):
        ledger.take(piece.member, piece.spots)
    for piece in room.taken:
        made.takes.append(_take(ledger, claimant, piece))
    ledger.grant(claimant, room.spots)
    workers = ledger.named(room.spots)
    made.promises.append(
        Promise(claim_id=claimant.view.id, workers=workers, reason="Its devices are being freed.")
    )
    for piece, spots in room.moved:
        ledger.grant(piece.member, spots)
        made.moves.append(_move(ledger, claimant, piece, spots))


def _take(ledger: Ledger, claimant: Member, piece: Piece) -> Take:
    member = piece.member
    goes_on = bool(member.spots)
    how = (
        TakeHow.SHRINK
        if goes_on
        else TakeHow.HIBERNATE
        if member.view.can_hibernate
        else TakeHow.RELEASE
    )
    return Take(
        claim_id=member.view.id,
        workers=ledger.named(piece.spots),
        how=how,
        claimant=claimant.view.id,
        busy=not member.view.idle,
        reason=f"Needed by a claim of {claimant.view.queue}.",
    )


def _move(ledger: Ledger, claimant: Member, piece: Piece, spots: Sequence[Spot]) -> Move:
    return Move(
        claim_id=piece.member.view.id,
        workers=ledger.named(piece.spots),
        to=ledger.named(spots),
        claimant=claimant.view.id,
        reason=f"Moved so that a claim of {claimant.view.queue} fits.",
    )
