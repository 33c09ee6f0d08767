"""A bound on waiting: whoever is blocked too long holds a reservation; others run in the gap only.

Made by a pass before anything is granted. What a reservation counts on is hidden from everybody
else, unless their time limit ends them before it starts, or they are expected to have ended and
agree to be hibernated if they have not. Source: backfill with a reservation for whoever waits
(Lifka, JSSPP'95; conservative as in Mu'alem and Feitelson, TPDS'01), oldest first, so that a wait
is bounded by T and the longest protected remainder of those that run.
"""

from collections.abc import Iterable

from .blocked import first_in_turn
from .kept import Kept, Reservation
from .ledger import Ledger, Member
from .outlook import Gap, Keeping, Outlook
from .spots import place
from .standing import standing_of

MOST_RESERVATIONS = 16
"""How many hold one at once; whoever waits longest holds one before whoever waits less long."""


def keep_for_blocked(ledger: Ledger, waiting: Iterable[Member], kept: Kept | None = None) -> Kept:
    """Reserve, for each claim blocked for longer than the rules allow, the earliest gap it fits.

    Args:
        ledger: The books.
        waiting: Who lacks something.
        kept: What is kept for bookings already, to which these are added.
    """
    kept = kept or Kept(ledger)
    if first := first_in_turn(ledger, waiting, MOST_RESERVATIONS):
        outlook = Outlook(ledger)
        for member in first:
            keep_for(kept, outlook, member)
    return kept


def keep_for(kept: Kept, outlook: Outlook, member: Member) -> None:
    """Reserve the earliest gap of a blocked claim beside what is kept already, if it has any."""
    ledger, gap = kept.ledger, _gap(kept, outlook, member)
    if gap is not None:
        standing = standing_of(ledger, member, member.needs)
        hidden = _hidden(ledger, outlook, member, gap)
        kept.keep(Reservation(member, gap, standing, hidden))


def _gap(kept: Kept, outlook: Outlook, member: Member) -> Gap | None:
    """Now, if it fits on what earlier reservations leave, else as claims end."""
    spots = place(kept.ledger, member, member.needs, member.needs)
    if spots:
        return Gap(kept.ledger.now_s, spots)
    return outlook.gap_for(member, member.needs)


def _hidden(ledger: Ledger, outlook: Outlook, member: Member, gap: Gap) -> list[Keeping]:
    keeping = outlook.keep(member, gap)
    if gap.start_s > ledger.now_s:
        return list(keeping)
    return [Keeping(member.view.worker, spot) for spot in gap.spots]
