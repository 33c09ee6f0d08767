"""The first step of a pass: whoever can be served with what is free, in the order of the line.

Gangs start whole on their minimum; then they grow one worker at a time, in turn with everybody
else, for a claim that has its minimum stands behind one that has not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .backfill import Kept
from .bits import bits
from .bounds import Hindrance, stops
from .decisions import Constraint, Grant
from .inventory import Inventory
from .ledger import Ledger, Member, Turn
from .queue_order import KnownKeys
from .shape import WorkerShape
from .waiting_line import Line
from .wording import grant_of


@dataclass(frozen=True, slots=True)
class Granting:
    """Who was served, and what the others met."""

    grants: tuple[Grant, ...] = ()
    hindered: tuple[Hindrance, ...] = ()
    served: tuple[Member, ...] = ()


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
    ledger: Ledger,
    waiting: Iterable[Member],
    kept: Kept | None = None,
    *,
    too_big: dict[WorkerShape, int] | None = None,
    keys: KnownKeys | None = None,
) -> Granting:
    """Serve all who can be served with what is free and not kept, and enter it in the books.

    Args:
        ledger: The books.
        waiting: Who may be served.
        kept: Reservations of those who are blocked.
        too_big: What is known from earlier passes of who does not fit; what is met is added.
        keys: What is known from earlier passes of where queues stand.
    """
    turns = _Turns(ledger, Line(ledger, waiting, keys), kept or Kept(ledger))
    if too_big is not None:
        turns.too_big = too_big
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
    is_too_big = fits_nowhere(ledger, member, turns.too_big)
    if is_too_big and not kept.reservations:
        return Hindrance(member, Constraint.DEVICES)
    spots = kept.place(member, count, is_too_big=is_too_big)
    if not spots:
        if not is_too_big:
            turns.too_big[member.view.worker] = min(
                count, turns.too_big.get(member.view.worker, count)
            )
        return Hindrance(member, kept.constraint(member, count))
    turns.before.setdefault(member.view.id, len(member.spots))
    turns.served[member.view.id] = member
    ledger.grant(member, spots)
    member.turn = Turn.SERVED
    return None


def fits_nowhere(ledger: Ledger, member: Member, too_big: Mapping[WorkerShape, int]) -> bool:
    """Whether as many workers of its shape were tried already.

    Who is too big now is too big until something is freed, and this walk frees nothing. Only a part
    of a device may still fit, beside others of the same people.
    """
    shape = member.view.worker
    if member.needs < too_big.get(shape, member.needs + 1):
        return False
    return not (shape.share and _might_share(ledger.inventory, shape, member.sharer))


def _might_share(inventory: Inventory, shape: WorkerShape, sharer: str) -> bool:
    """Whether a part of a device fits beside others of the same people, cores left aside."""
    shared = inventory.shared_by.get(sharer, 0) if sharer else 0
    return any(
        left >= shape.share and bay.sharers[position] == sharer
        for bay in map(inventory.bays.__getitem__, bits(shared & inventory.accepting(shape)))
        for position, left in bay.parts.items()
    )
