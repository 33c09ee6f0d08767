"""One scheduling pass, step by step: promises, what is kept, what is free, moves, reclaim, rank.

Called by the manager whenever something may have changed, and by the simulator. Each step looks at
the books as the one before left them. A pass over what it has brought about decides nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from jupyter_gpupool.pool.rules import SurplusOrder

from . import attained_service
from .backfill import keep_for_blocked
from .beside import sift_beside
from .bounds import Hindrance
from .clearing import clear_for
from .decisions import Constraint, Decisions, Notice, Promise, Waiting
from .fitting import Sieve
from .granting import serve
from .kept import Kept
from .ledger import Ledger, Member, Turn
from .overrunning import searches_beside
from .pool_view import PoolView
from .reasons import freeing, reasons
from .service_books import ServiceBooks
from .steps import SEARCHES, Made, Steps, keep_promises, make_room_for_each
from .tree_shares import divide_tree
from .victims import Holders
from .waiting_line import in_line
from .workload import workload_of

__all__ = ["Steps", "books_of", "decide", "plan"]


def plan(view: PoolView, steps: Steps = Steps.ALL) -> Decisions:
    """Decide who gets what, who gives what back, and why everybody else waits."""
    return decide(books_of(view), steps)


def books_of(view: PoolView) -> Ledger:
    """The books of a moment, with the shares entered that it gives."""
    ledger, k = Ledger(view), view.rules.usage_weight
    shares = divide_tree(view.tree, ledger.total, ledger.requests(), view.usage, k=k)
    ledger.set_shares(shares.shares)
    return ledger


def decide(
    ledger: Ledger,
    steps: Steps = Steps.ALL,
    *,
    explain: bool = True,
    made: Made | None = None,
) -> Decisions:
    """Take the steps of a pass on books whose shares are entered.

    Args:
        ledger: The books; they hold what was decided afterwards.
        steps: Which steps to take.
        explain: Also say why everybody else waits: for thousands it takes as long as the pass.
        made: Told who was touched, for books that live on.
    """
    if ledger.rules.surplus_order is SurplusOrder.LEAST_ATTAINED_SERVICE:
        return _by_attained_service(ledger, steps, explain=explain)
    made = made or Made()
    ledger.inventory.expect(workload_of(ledger.expected.items()))
    keep_promises(ledger, ledger.members.values(), made)
    waiting = [m for m in ledger.members.values() if m.needs and not m.promised]
    kept, notices = Kept(ledger, explains=explain), tuple[Notice, ...]()
    if Steps.GRANT in steps:
        # Who fits nowhere does not either once something is kept.
        sieve = Sieve()
        sifted = sieve.sift(ledger, waiting)
        notices = clear_for(ledger, ledger.bookings, kept)
        keep_for_blocked(ledger, waiting, kept)
        sifted = sift_beside(kept, sifted) if kept.reservations else sifted
        granting = serve(ledger, sifted, kept, Sieve() if kept.reservations else sieve)
        made.grants += granting.grants
        made.hindered += granting.hindered
        made.touched += granting.served
    is_unfinished = _make_room(ledger, waiting, kept, steps, made)
    kept.close()
    waits = _waits(ledger, _in_line(ledger, made.hindered), made.promises) if explain else ()
    return replace(
        made.decisions(ledger),
        waits=tuple(waits),
        notices=notices if Steps.RECLAIM in steps else (),
        unfinished=is_unfinished,
    )


def _make_room(
    ledger: Ledger, waiting: Sequence[Member], kept: Kept, steps: Steps, made: Made
) -> bool:
    """Take the steps by which others give; whether there was more to look for than a pass may."""
    if not ledger.rules.may_move:
        steps &= ~Steps.MOVE
    searches = [search for search in searches_beside(kept, SEARCHES) if search.step in steps]
    if not searches:
        return False
    holders = Holders(ledger)
    for search in searches:
        if not holders.unfinished:
            make_room_for_each(holders, waiting, search, made)
    return holders.unfinished


def _by_attained_service(ledger: Ledger, steps: Steps, *, explain: bool) -> Decisions:
    """Keep what is booked, and take the one step that this order has instead of all others."""
    takes, kept = Steps.RECLAIM in steps, Kept(ledger)
    notices = clear_for(ledger, ledger.bookings, kept)
    books = ServiceBooks(ledger)
    made = attained_service.decide(books, kept, takes=takes)
    hindered = list(attained_service.hindered(books, kept)) if explain else []
    if ledger.rules.may_move and Steps.MOVE in steps:
        made = _with_moves(ledger, kept, made)
    kept.close()
    waiting = (each for each in hindered if not each.member.promised)
    waits = _waits(ledger, waiting, made.promises) if explain else ()
    return replace(made, waits=tuple(waits), notices=notices if takes else ())


def _with_moves(ledger: Ledger, kept: Kept, made: Decisions) -> Decisions:
    """Look for moves for those for whom nobody gave way; whoever got or gave anything stays."""
    for claim_id in made.concerned:
        ledger.members[claim_id].turn = Turn.SERVED
    members, found = ledger.members.values(), Made()
    waiting = [m for m in members if m.needs and not m.promised and m.turn is Turn.NONE]
    for search in searches_beside(kept, SEARCHES):
        if search.step is Steps.MOVE:
            make_room_for_each(Holders(ledger), waiting, search, found)
    moves, promises = (*made.moves, *found.moves), (*made.promises, *found.promises)
    return replace(made, moves=moves, promises=promises)


def _in_line(ledger: Ledger, hindered: Iterable[Hindrance]) -> Iterator[Hindrance]:
    """What the claims met that still wait, in the order of the line."""
    last = {hindrance.member.view.id: hindrance for hindrance in hindered}
    members = (hindrance.member for hindrance in last.values())
    waiting = (member for member in members if member.needs and not member.promised)
    return (last[member.view.id] for member in in_line(ledger, waiting))


def _waits(
    ledger: Ledger, hindered: Iterable[Hindrance], promises: Iterable[Promise]
) -> Iterator[Waiting]:
    yield from reasons(ledger, hindered)
    new = {promise.claim_id: promise for promise in promises}
    for promise in new.values():
        yield Waiting(
            claim_id=promise.claim_id,
            place=1,
            constraint=Constraint.FREEING,
            reason=promise.reason,
        )
    for member in ledger.members.values():
        if member.promised and member.view.id not in new:
            yield freeing(ledger, member)
