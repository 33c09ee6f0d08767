"""The first step of a pass: whoever can be served with what is free, in the order of the line.

Gangs start whole on their minimum; then they grow one worker at a time, in turn with everybody
else, for a claim that has its minimum stands behind one that has not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from .backfill import Kept
from .bounds import Hindrance, stops
from .decisions import Constraint, Grant
from .fitting import Sieve, Sifted
from .ledger import Ledger, Member, Turn
from .queue_order import KnownKeys
from .waiting_line import Line
from .wording import grant_of


@dataclass(frozen=True, slots=True)
class Granting:
    """Who was served, and what the others met, in no order that means anything."""

    grants: tuple[Grant, ...] = ()
    hindered: tuple[Hindrance, ...] = ()
    served: tuple[Member, ...] = ()


@dataclass(slots=True)
class _Turns:
    """One walk down the line.

    Attributes:
        kept: Reservations of those who are blocked.
        sieve: Who is known not to fit.
        before: What each served claim had before.
    """

    ledger: Ledger
    line: Line
    kept: Kept
    sieve: Sieve
    hindered: list[Hindrance]
    before: dict[str, int] = field(default_factory=dict)
    served: dict[str, Member] = field(default_factory=dict)


def grant_from_free(
    ledger: Ledger,
    waiting: Iterable[Member],
    kept: Kept | None = None,
    *,
    sieve: Sieve | None = None,
    keys: KnownKeys | None = None,
) -> Granting:
    """Serve all who can be served with what is free and not kept, and enter it in the books.

    Args:
        ledger: The books.
        waiting: Who may be served.
        kept: Reservations of those who are blocked.
        sieve: What is known from earlier passes of who does not fit.
        keys: What is known from earlier passes of where queues stand.
    """
    kept, sieve = kept or Kept(ledger), sieve or Sieve()
    # What is kept may be open to some of a shape and not to others: each has to be asked in turn.
    sifted = Sifted(list(waiting), []) if kept.reservations else sieve.sift(ledger, waiting)
    turns = _Turns(ledger, Line(ledger, sifted.fitting, keys), kept, sieve, sifted.hindered)
    while (leaf := turns.line.leaf()) is not None:
        _serve(turns, leaf)
        turns.line.refresh(leaf)
    grants = tuple(
        turns.kept.as_lent(grant_of(ledger, member, member.spots[turns.before[claim_id] :]))
        for claim_id, member in turns.served.items()
    )
    return Granting(grants, tuple(turns.hindered), tuple(turns.served.values()))


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
    ledger, kept, count = turns.ledger, turns.kept, member.needs
    hindrance = stops(ledger, member, count)
    if hindrance is not None:
        return hindrance
    fits = turns.sieve.fits(ledger, member)
    if not fits and not kept.reservations:
        return Hindrance(member, Constraint.DEVICES)
    spots = kept.place(member, count, is_too_big=not fits)
    if not spots:
        turns.sieve.note(member)
        return Hindrance(member, kept.constraint(member, count))
    turns.before.setdefault(member.view.id, len(member.spots))
    turns.served[member.view.id] = member
    ledger.grant(member, spots)
    member.turn = Turn.SERVED
    return None
