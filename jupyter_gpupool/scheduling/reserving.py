"""What is kept for those who are blocked, in books that live from pass to pass.

Looked at by every pass of `kept_books`, and made anew only if somebody else is first in turn, the
books have changed or time has passed. May be done in several goes.
"""

from collections.abc import Iterator
from typing import TypeAlias

from .backfill import MOST_RESERVATIONS, keep_for
from .blocked import BlockedLine
from .endings import Endings
from .inventory import Spot
from .kept import Kept
from .ledger import Ledger, Member
from .outlook import Outlook
from .standing import Standing, standing_of
from .waiters import Waiters

_Hidden: TypeAlias = list[tuple[Member | None, Standing, list[Spot]]]
"""For whom what is kept, and with what right."""

_BAYS_A_LOOK = 16
"""So many bays can be looked ahead over in the time that one claim takes."""


class Reserving:
    """Reservations, as far as they are known.

    Attributes:
        kept: What was kept at the last look; shown in the books, but for the steps of a pass.
        is_other: At the last look something else was kept than before.
        has_moved: Time has passed since the look before it, with anything kept: some may end in
            time now.
    """

    def __init__(self, ledger: Ledger, waiters: Waiters) -> None:
        self._ledger = ledger
        self._line = BlockedLine(ledger, waiters.of, MOST_RESERVATIONS)
        self._endings = Endings(ledger)
        self._turns: list[tuple[Member, int, Standing]] = []
        self._hidden: _Hidden = []
        self._looked_s = ledger.now_s
        self._is_stale = True
        self.kept = Kept(ledger, explains=False)
        self.is_other = self.has_moved = False

    def changed(self, member: Member) -> None:
        """A claim waits, holds or is promised something else than before."""
        self._line.changed(member)
        self._endings.note(member)
        self._is_stale |= bool(member.spots or member.promised)

    def gone(self, member: Member) -> None:
        """A claim has left the books with all it held."""
        self._line.changed(member)
        self._endings.forget(member.view.id)

    def freed(self) -> None:
        """What is free, or may be leased at all, is other than before."""
        self._is_stale = True

    def share_changed(self, queue: int) -> None:
        """The share of a queue is another."""
        self._line.stir(queue)

    def anew(self) -> None:
        """Anything may have changed."""
        self._line.stir_all()
        self._is_stale = True

    def look(self) -> Iterator[int]:
        """See what is to be kept now.

        Yields:
            About how many claims could have been looked at meanwhile; it may stop there for good,
            and the books are as they were.
        """
        ledger = self._ledger
        turns = [(m, m.needs, standing_of(ledger, m, m.needs)) for m in self._line.first()]
        has_passed = ledger.now_s != self._looked_s and bool(turns)
        self.is_other = self.has_moved = False
        if turns == self._turns and not self._is_stale and not has_passed:
            return
        kept = Kept(ledger, explains=False)
        try:
            if turns:
                outlook = Outlook(ledger, self._endings)
                effort = 1 + len(ledger.inventory.bays) // _BAYS_A_LOOK
                for member, *_ in turns:
                    keep_for(kept, outlook, member)
                    yield effort
        finally:
            kept.close()
        hidden: _Hidden = [
            (each.holder, each.standing, [keeping.spot for keeping in each.hidden])
            for each in kept.reservations
        ]
        self.is_other, self.has_moved = hidden != self._hidden, has_passed
        self.kept, self._turns, self._hidden = kept, turns, hidden
        self._looked_s, self._is_stale = ledger.now_s, False
