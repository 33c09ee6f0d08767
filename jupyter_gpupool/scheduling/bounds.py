"""What limits and guarantees have against more workers of a claim, whatever is free."""

from typing import NamedTuple

from .decisions import Constraint
from .ledger import Ledger, Member


class Hindrance(NamedTuple):
    """What a claim met when its turn came.

    Attributes:
        queue: The number of the queue whose limit or guarantee it is, else -1.
    """

    member: Member
    constraint: Constraint
    queue: int = -1


def stops(ledger: Ledger, member: Member, count: int) -> Hindrance | None:
    """What limits or guarantees have against so many more workers of a claim."""
    if not ledger.may_be_stopped(member):
        return None
    queue = ledger.over_limit(member, count)
    if queue is not None:
        return Hindrance(member, Constraint.LIMIT, queue)
    queue = ledger.over_guarantee(member, count)
    if queue is not None:
        return Hindrance(member, Constraint.GUARANTEE, queue)
    return None
