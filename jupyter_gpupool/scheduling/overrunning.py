"""Whoever was lent a gap and has overrun it goes when the claim it was kept for needs it.

One of the searches of a pass, as `reclaiming.reclaim_for` is; see `kept` for who is lent what. All
other searches find what is kept hidden, but for what is kept for their claimant.
"""

from collections.abc import Iterable, Iterator
from functools import partial

from .kept import Kept
from .ledger import Member
from .making_room import Room, make_room
from .pieces import pieces_of
from .steps import Search, Steps
from .victims import Holders


def searches_beside(kept: Kept, searches: Iterable[Search]) -> Iterator[Search]:
    """The searches of a pass that heed what is kept, this one the first."""
    yield Search(
        Steps.RECLAIM,
        lambda _, claimant: kept.is_due(claimant),
        lambda _, claimant: end_overrun_for(kept, claimant),
    )
    for search in searches:
        yield search._replace(find=partial(_find_beside, kept, search))


def _find_beside(kept: Kept, search: Search, holders: Holders, claimant: Member) -> Room | None:
    return kept.room(claimant, partial(search.find, holders, claimant))


def end_overrun_for(kept: Kept, claimant: Member) -> Room | None:
    """Find who has overrun a gap and goes so that a claim starts that is due; changes nothing."""
    ledger = kept.ledger
    if not kept.is_due(claimant):
        return None
    now_s, members = ledger.now_s, ledger.members.values()
    # Hardly anybody has borrowed.
    lent = [member for member in members if member.view.lent_until_s is not None]
    overrun = [member for member in lent if member.spots and member.view.has_overrun(now_s)]
    if not overrun:
        return None
    # Whoever should have gone first goes first.
    overrun.sort(key=lambda member: (member.view.lent_until_s or 0.0, member.view.id))
    pieces = (piece for member in overrun for piece in pieces_of(member))
    return make_room(ledger, claimant, pieces, lambda *_: True, may_move=False)
