"""What right a claim has to what it asks for: its queue's guarantee, its share, or neither."""

from enum import IntEnum

from .ledger import Ledger, Member


class Standing(IntEnum):
    """What right a claim has to what it asks for; a better right is not held up by a lesser one."""

    GUARANTEED = 0
    WITHIN_SHARE = 1
    BEYOND_SHARE = 2


def standing_of(ledger: Ledger, member: Member, count: int) -> Standing:
    """What right a claim has to so many more workers."""
    leaf = member.leaf
    team = ledger.team[leaf]
    is_guaranteed = is_within_share = True
    of_team, of_leaf = ledger.held[team], ledger.held[leaf]
    guarantee, share = ledger.guarantee[team], ledger.share[leaf]
    # Written out, for a pass asks this ten thousand times.
    for kind, amount in member.counts:
        more = amount * count
        if of_team[kind] + more > guarantee[kind]:
            is_guaranteed = False
        if of_leaf[kind] + more > share[kind]:
            is_within_share = False
    if is_guaranteed:
        return Standing.GUARANTEED
    return Standing.WITHIN_SHARE if is_within_share else Standing.BEYOND_SHARE
