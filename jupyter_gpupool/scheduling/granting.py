"""The first step of a pass: whoever can be served with what is free, in the order of the line.

Gangs start whole on their minimum; then they grow one worker at a time, in turn with everybody
else, for a claim that has its minimum stands behind one that has not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .bounds import Hindrance, stops
from .decisions import Constraint, Grant
from .fitting import Sieve, Sifted, is_full, least_needs
from .kept import Kept
from .ledger import Ledger, Member, Turn
from .waiting_line import Known, Line
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
        failed: Somebody found no room since the last one was served.
    """

    ledger: Ledger
    line: Line
    kept: Kept
    sieve: Sieve
    hindered: list[Hindrance]
    before: dict[str, int] = field(default_factory=dict)
    served: dict[str, Member] = field(default_factory=dict)
    failed: bool = False


def grant_from_free(
    ledger: Ledger, waiting: Iterable[Member], kept: Kept | None = None
) -> Granting:
    """Serve all who can be served with what is free and not kept, and enter it in the books."""
    kept, sieve = kept or Kept(ledger), Sieve()
    # What is kept may be open to some of a shape and not to others: each has to be asked in turn.
    sifted = Sifted(list(waiting), []) if kept.reservations else sieve.sift(ledger, waiting)
    return serve(ledger, sifted, kept, sieve)


def serve(
    ledger: Ledger, sifted: Sifted, kept: Kept, sieve: Sieve, known: Known | None = None
) -> Granting:
    """Serve those who fit, in the order of the line.

    Args:
        ledger: The books.
        sifted: Those who fit, each for itself, and what stands against others.
        kept: Reservations of those who are blocked.
        sieve: With what they were sifted.
        known: What is known from earlier passes of the line.
    """
    turns = _Turns(ledger, Line(ledger, sifted.fitting, known), kept, sieve, sifted.hindered)
    # With reservations what is free is no measure: nobody is left out.
    least = {} if kept.reservations else least_needs(sifted.fitting)
    while (leaf := turns.line.leaf()) is not None:
        _serve(turns, leaf)
        turns.line.refresh(leaf)
        if least and turns.failed and is_full(ledger.inventory, least):
            _leave_out(turns, known)
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
            turns.failed = False
            if member.needs:
                line.push(member)
            return
        turns.failed = True
        turns.hindered.append(hindrance)


def _leave_out(turns: _Turns, known: Known | None) -> None:
    """Go on with those alone who still fit, for nothing of use to most is free any more."""
    sifted = turns.sieve.sift(turns.ledger, turns.line.rest())
    if known is not None:
        # Whoever was served on the way stands elsewhere by now.
        served = turns.served
        standings = {i: stood for i, stood in known.standings.items() if i not in served}
        known = replace(known, standings=standings)
    turns.line, turns.failed = Line(turns.ledger, sifted.fitting, known), False
    turns.hindered += sifted.hindered


def _turn(turns: _Turns, member: Member) -> Hindrance | None:
    ledger, kept, count = turns.ledger, turns.kept, member.needs
    if ledger.may_be_stopped(member):
        hindrance = stops(ledger, member, count)
        if hindrance is not None:
            return hindrance
    might_fit = turns.sieve.might_fit(ledger, member)
    if not might_fit and not kept.reservations:
        return Hindrance(member, Constraint.DEVICES)
    spots = kept.place(member, count, is_too_big=not might_fit)
    if not spots:
        if might_fit:
            turns.sieve.note(member)
        return Hindrance(member, kept.constraint(member, count))
    turns.before.setdefault(member.view.id, len(member.spots))
    turns.served[member.view.id] = member
    ledger.grant(member, spots)
    member.turn = Turn.SERVED
    return None
