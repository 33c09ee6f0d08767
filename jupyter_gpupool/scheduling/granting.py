"""The first step of a pass: whoever can be served with what is free, in the order of the line.

Gangs start whole on their minimum; then they grow one worker at a time, in turn with everybody
else, for a claim that has its minimum stands behind one that has not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from .backfill import Kept
from .bounds import Hindrance, stops
from .decisions import Grant
from .ledger import Ledger, Member, Turn
from .shape import WorkerShape
from .waiting_line import Line
from .wording import grant_of


@dataclass(frozen=True, slots=True)
class Granting:
    """Who was served, and what the others met."""

    grants: tuple[Grant, ...] = ()
    hindered: tuple[Hindrance, ...] = ()


@dataclass(slots=True)
class _Turns:
    """One walk down the line.

    Attributes:
        kept: Reservations of those who are blocked.
        too_big: By shape, the smallest number of workers for which there was no room.
        before: What each served claim had before.
    """

    ledger: Ledger
    line: Line
    kept: Kept
    too_big: dict[WorkerShape, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    served: dict[str, Member] = field(default_factory=dict)
    hindered: list[Hindrance] = field(default_factory=list)


def grant_from_free(
    ledger: Ledger, waiting: Iterable[Member], kept: Kept | None = None
) -> Granting:
    """Serve all who can be served with what is free and not kept, and enter it in the books."""
    turns = _Turns(ledger, Line(ledger, waiting), kept or Kept(ledger))
    while (leaf := turns.line.leaf()) is not None:
        _serve(turns, leaf)
        turns.line.refresh(leaf)
    grants = tuple(
        turns.kept.as_lent(grant_of(ledger, member, member.spots[turns.before[claim_id] :]))
        for claim_id, member in turns.served.items()
    )
    return Granting(grants, tuple(turns.hindered))


def _serve(turns: _Turns, leaf: int) -> None:
    """Serve the first claim of a queue that can be served; whoever is before it goes without."""
    line = turns.line
    while (member := line.first(leaf)) is not None:
        line.leave(leaf)
        hindrance = _turn(turns, member)
        if hindrance is None:
            if member.needs:
                line.push(member)
            return
        turns.hindered.append(hindrance)


def _turn(turns: _Turns, member: Member) -> Hindrance | None:
    ledger, count = turns.ledger, member.needs
    # Who is too big now is too big until something is freed, and this walk frees nothing.
    too_big = turns.too_big.get(member.view.worker)
    hindrance = stops(ledger, member, count)
    if hindrance is not None:
        return hindrance
    is_too_big = too_big is not None and count >= too_big
    spots = turns.kept.place(member, count, is_too_big=is_too_big)
    if not spots:
        if not is_too_big:
            turns.too_big[member.view.worker] = count
        return Hindrance(member, turns.kept.constraint(member, count))
    turns.before.setdefault(member.view.id, len(member.spots))
    turns.served[member.view.id] = member
    ledger.grant(member, spots)
    member.turn = Turn.SERVED
    return None
