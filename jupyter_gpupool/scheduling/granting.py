"""The first step of a pass: whoever can be served with what is free, in the order of the line.

Gangs start whole on their minimum; then they grow one worker at a time, in turn with everybody
else, for a claim that has its minimum stands behind one that has not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .bounds import Hindrance, stops
from .decisions import Constraint, Grant
from .ledger import Ledger, Member, Turn
from .shape import WorkerShape
from .spots import place
from .waiting_line import Line
from .wording import grant_of


@dataclass(frozen=True, slots=True)
class Granting:
    """Who was served, and what the others met, in the order of the line."""

    grants: tuple[Grant, ...] = ()
    hindered: tuple[Hindrance, ...] = ()


@dataclass(slots=True)
class _Turns:
    """One walk down the line.

    Attributes:
        too_big: By shape, the smallest number of workers for which there was no room.
        before: What each served claim had before.
    """

    ledger: Ledger
    line: Line
    too_big: dict[WorkerShape, int] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    served: dict[str, Member] = field(default_factory=dict)
    hindered: list[Hindrance] = field(default_factory=list)


def grant_from_free(ledger: Ledger, waiting: Sequence[Member]) -> Granting:
    """Serve all who can be served with what is free, and enter it in the books."""
    turns = _Turns(ledger, Line(ledger, waiting))
    while (member := turns.line.pop()) is not None:
        hindrance = _turn(turns, member)
        if hindrance is not None:
            turns.hindered.append(hindrance)
    grants = tuple(
        grant_of(ledger, member, member.spots[turns.before[claim_id] :])
        for claim_id, member in turns.served.items()
    )
    return Granting(grants, tuple(turns.hindered))


def _turn(turns: _Turns, member: Member) -> Hindrance | None:
    ledger, count = turns.ledger, member.needs
    hindrance = stops(ledger, member, count)
    if hindrance is not None:
        return hindrance
    # Who is too big now is too big until something is freed, and this walk frees nothing.
    if count >= turns.too_big.get(member.view.worker, count + 1):
        return Hindrance(member, Constraint.DEVICES)
    spots = place(ledger, member, count, count)
    if not spots:
        turns.too_big[member.view.worker] = count
        return Hindrance(member, Constraint.DEVICES)
    turns.before.setdefault(member.view.id, len(member.spots))
    turns.served[member.view.id] = member
    ledger.grant(member, spots)
    member.turn = Turn.SERVED
    if member.needs:
        turns.line.push(member)
    else:
        turns.line.changed(member.leaf)
    return None
