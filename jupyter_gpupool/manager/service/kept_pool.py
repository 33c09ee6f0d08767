"""Books of the pool that live from pass to pass: one claim more changes little of a large pool.

Kept by the service in its `Sight`, asked by `planning`. Each pass is given the view that it would
be given in any case; what differs from the one before is entered, and that alone is looked at.
Whatever is unusual, such as another policy or another host, makes the books anew; so does whoever
calls `drop`, not knowing any more what has become of a pass.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.rules import SurplusOrder
from jupyter_gpupool.scheduling.decisions import Decisions
from jupyter_gpupool.scheduling.kept_books import KeptBooks
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.queues import Queue, QueueTree
from jupyter_gpupool.scheduling.reservations import moments_of
from jupyter_gpupool.scheduling.rounds import plan
from jupyter_gpupool.scheduling.steps import Steps

if TYPE_CHECKING:
    from jupyter_gpupool.pool.ids import ClaimId

_SEARCHES, _EFFORT = 4, 2000
"""So much a pass after an event looks for, and at: some milliseconds, however large the pool is."""

_SEARCHES_ON = 64
"""For so many kinds of claims each pass looks that goes on, while nobody waits for its answer."""

CHARGE_EVERY_S = 30.0
"""How old the decayed usage may be by which shares are divided; its half-life is a day."""

_MOST_EMPTY = 256
"""So many leaves of users that claim nothing any more are not worth making the books anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """What came of a pass.

    Attributes:
        is_explained: It says of each claim that waits why it does.
        somebody_waits: And may have a better right later, though nothing else happens.
    """

    decided: Decisions
    is_explained: bool
    somebody_waits: bool


class KeptPool:
    """The books, as far as there are any, and the view that they stand for."""

    def __init__(self) -> None:
        self._books: KeptBooks | None = None
        self._seen: PoolView | None = None
        self._steps = Steps.ALL
        self._claims: dict[ClaimId, ClaimView] = {}
        self._touched: frozenset[ClaimId] = frozenset()
        self._charged_s = 0.0
        self._may_go_on = False

    @property
    def usage(self) -> dict[str, float]:
        """By which decayed usage shares are divided now."""
        return {} if self._books is None else dict(self._books.usage)

    def drop(self) -> None:
        """Forget the books: the next pass makes them anew."""
        self._books, self._may_go_on = None, False

    def happened(self) -> None:
        """Something has changed in the books of the manager: the next pass has to look at them."""
        self._may_go_on = False

    def go_on(self) -> Passed | None:
        """Look on where the last pass had not finished, nothing having happened since.

        Returns:
            None if it had.
        """
        books = self._books
        if books is None or not self._may_go_on:
            return None
        return self._passed(books, books.decide(searches=_SEARCHES_ON))

    def decide(self, view: PoolView, steps: Steps, *, explain: bool) -> Passed:
        """Take a pass.

        Args:
            view: The pool as it is now.
            steps: Which steps to take.
            explain: Look at everybody, in books made anew, and say why they wait.
        """
        if explain or view.rules.surplus_order is not SurplusOrder.FAIR_SHARE:
            # Few claims: their books are made as quickly as they are amended. And attained service
            # grows while nothing happens: a pass has to look at all who hold.
            self.drop()
            decided = plan(view, steps)
            waits = bool(decided.waits)
            return Passed(decided=decided, is_explained=True, somebody_waits=waits)
        books = self._books
        if books is None or not self._follows(books, view, steps):
            books = self._anew(view, steps)
        self._seen, self._claims = view, {claim.id: claim for claim in view.claims}
        if _is_booked(view):
            passed = self._passed(books, books.decide_all())
            self._may_go_on = False
            return passed
        return self._passed(books, books.decide())

    def _passed(self, books: KeptBooks, decided: Decisions) -> Passed:
        self._touched = decided.concerned
        self._may_go_on = decided.unfinished
        waits = books.somebody_waits
        return Passed(decided=decided, is_explained=False, somebody_waits=waits)

    def _anew(self, view: PoolView, steps: Steps) -> KeptBooks:
        self._books = KeptBooks(view, steps=steps, searches=_SEARCHES, effort=_EFFORT)
        self._steps, self._charged_s = steps, view.now_s
        return self._books

    # From one view to the next

    def _follows(self, books: KeptBooks, view: PoolView, steps: Steps) -> bool:
        """Enter what differs from the view before; whether the books are those of this one now."""
        seen = self._seen
        if seen is None or steps != self._steps or not _are_alike(seen, view):
            return False
        if not self._enter_tree(books, view) or not self._enter_claims(books, view, seen):
            return False
        books.advance(view.now_s)
        return True

    def _enter_tree(self, books: KeptBooks, view: PoolView) -> bool:
        if self._seen is not None and view.tree is not self._seen.tree:
            if not _differs_by_users(books.ledger.queues, view.tree):
                return False
            books.join(view.tree, view.usage)
        elif view.now_s - self._charged_s >= CHARGE_EVERY_S:
            books.charge(view.usage)
        else:
            return True
        self._charged_s = view.now_s
        return True

    def _enter_claims(self, books: KeptBooks, view: PoolView, seen: PoolView) -> bool:
        """Let claims end before others hold what was theirs."""
        new, ids = list[ClaimView](), {claim.id for claim in view.claims}
        for gone in [claim_id for claim_id in self._claims if claim_id not in ids]:
            books.end(gone)
        for claim in self._others_than_before(view.claims):
            if claim.id not in self._claims:
                new.append(claim)
            elif not books.update(claim):
                books.end(claim.id)
                new.append(claim)
        for before, host in zip(seen.hosts, view.hosts, strict=True):
            if host is not before and not books.see(host):
                return False
        for claim in new:
            books.arrive(claim)
        return True

    def _others_than_before(self, claims: Iterable[ClaimView]) -> list[ClaimView]:
        """Those of which something is other than before, or than the last pass would have it."""
        before, touched = self._claims, self._touched
        return [c for c in claims if before.get(c.id) is not c or c.id in touched]


def _are_alike(seen: PoolView, view: PoolView) -> bool:
    """Whether one view can come of another: the same hosts, by the same rules, no sooner."""
    if view.now_s < seen.now_s or view.rules != seen.rules or view.bookings != seen.bookings:
        return False
    return [host.id for host in view.hosts] == [host.id for host in seen.hosts]


def _differs_by_users(known: Iterable[Queue], tree: QueueTree) -> bool:
    """Whether a tree has the same queues, but for leaves of users that have come or gone."""
    queues = {queue.name: queue for queue in known}
    empty = 0
    for name, queue in queues.items():
        now = tree.queues.get(name)
        if now is None and queue.user is not None:
            empty += 1
        elif now is not queue and now != queue:
            return False
    new = (queue for name, queue in tree.queues.items() if name not in queues)
    return empty <= _MOST_EMPTY and all(queue.user is not None for queue in new)


def _is_booked(view: PoolView) -> bool:
    """Whether any window is open or near: then each pass says anew what has to be given back."""
    for booking in view.bookings:
        near_s, _, until_s = moments_of(booking)
        if near_s <= view.now_s < until_s:
            return True
    return False
