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
    held, share = ledger.held[member.leaf], ledger.share[member.leaf]
    team = next(queue for queue in member.path if not ledger.is_user[queue])
    if _is_within(ledger.held[team], member, count, ledger.guarantee[team]):
        return Standing.GUARANTEED
    if _is_within(held, member, count, share):
        return Standing.WITHIN_SHARE
    return Standing.BEYOND_SHARE


def _is_within(held: Sequence[int], member: Member, count: int, bound: Sequence[int]) -> bool:
    return all(
        amount == 0 or mine + amount * count <= most
        for mine, amount, most in zip(held, member.each, bound, strict=True)
    )
