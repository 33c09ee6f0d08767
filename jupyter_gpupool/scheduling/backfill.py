"""A bound on waiting: whoever is blocked too long holds a reservation; others run in the gap only.

Made by a pass before anything is granted. What a reservation counts on is hidden from everybody
else, unless their time limit ends them before it starts, or they are expected to have ended and
agree to be hibernated if they have not. Source: backfill with a reservation for whoever waits
(Lifka, JSSPP'95; conservative as in Mu'alem and Feitelson, TPDS'01), oldest first, so that a wait
is bounded by T and the longest protected remainder of those that run.
"""

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import TypeAlias

from .bounds import stops
from .kept import Kept, Reservation
from .ledger import Ledger, Member
from .outlook import Gap, Keeping, Outlook
from .spots import place
from .standing import Standing, standing_of

MOST_RESERVATIONS = 16
"""How many hold one at once; whoever waits longest holds one before whoever waits less long."""

_Claim: TypeAlias = tuple[Standing, float]
"""What right somebody has to what it asks for, and since when it waits."""


def keep_for_blocked(ledger: Ledger, waiting: Iterable[Member], kept: Kept | None = None) -> Kept:
    """Reserve, for each claim blocked for longer than the rules allow, the earliest gap it fits.

    Args:
        ledger: The books.
        waiting: Who lacks something.
        kept: What is kept for bookings already, to which these are added.
    """
    kept = kept or Kept(ledger)
    blocked = [member for member in waiting if is_blocked(ledger, member)]
    if not blocked:
        return kept
    outlook = Outlook(ledger)
    for member in _first_in_turn(ledger, blocked, MOST_RESERVATIONS):
        gap = _gap(kept, outlook, member)
        if gap is not None:
            standing = standing_of(ledger, member, member.needs)
            hidden = _hidden(ledger, outlook, member, gap)
            kept.keep(Reservation(member, gap, standing, hidden))
    return kept


def is_blocked(ledger: Ledger, member: Member) -> bool:
    """Whether a claim has waited too long for its minimum, and for nothing but devices."""
    if ledger.now_s - member.view.since_s < ledger.rules.blocked_for_s:
        return False
    lacks_minimum = member.has < member.view.minimum and not member.promised
    return lacks_minimum and stops(ledger, member, member.needs) is None


def _first_in_turn(ledger: Ledger, blocked: Sequence[Member], most: int) -> list[Member]:
    """The better right first, then the oldest; within a queue the higher rank, then the oldest.

    Who is first there stands for all behind it: what is given to the lower would be taken again for
    the higher, and small claims, that fit in what is left of a share, would keep a gang out.
    """
    best: dict[int, dict[int, _Claim]] = {}
    for member in blocked:
        ranks, priority = best.setdefault(member.leaf, {}), member.view.priority
        mine = standing_of(ledger, member, member.needs), member.view.since_s
        if priority not in ranks or mine < ranks[priority]:
            ranks[priority] = mine
    for ranks in best.values():
        first = None
        for priority in sorted(ranks):
            first = ranks[priority] if first is None else min(first, ranks[priority])
            ranks[priority] = first

    def turn(member: Member) -> tuple[_Claim, int, float, str]:
        view = member.view
        return best[member.leaf][view.priority], -view.priority, view.since_s, view.id

    return nsmallest(most, blocked, key=turn)


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
