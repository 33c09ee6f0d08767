"""What right a claim has to what it asks for: its queue's guarantee, its share, or neither."""

from collections.abc import Sequence
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
    if _is_within(ledger.held[team], member, count, ledger.guarantee[team]):
        return Standing.GUARANTEED
    if _is_within(ledger.held[leaf], member, count, ledger.share[leaf]):
        return Standing.WITHIN_SHARE
    return Standing.BEYOND_SHARE


def _is_within(held: Sequence[int], member: Member, count: int, bound: Sequence[int]) -> bool:
    if len(member.counts) == 1:
        # As good as all claims count for one kind, and a pass asks this ten thousand times.
        kind, amount = member.counts[0]
        return held[kind] + amount * count <= bound[kind]
    return all(held[kind] + amount * count <= bound[kind] for kind, amount in member.counts)
