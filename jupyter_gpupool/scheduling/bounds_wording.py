"""What a limit or a guarantee has against a claim, as the sentence that its user reads.

Called by `reasons.py` for whoever met one in a pass.
"""

from collections.abc import Sequence

from .amounts import CPU, MEMORY, WHOLE_DEVICE
from .ledger import Ledger, Member


def at_limit(ledger: Ledger, member: Member, queue: int) -> str:
    """Say which limit is reached: a user's or a queue's, of devices or of something else."""
    budget_s = _budget_s(ledger, queue)
    if budget_s is not None:
        hours = f"{budget_s / 3600:g} device-hours"
        return f"{_name(ledger, queue)} has used up the {hours} of this period."
    kind = _first_beyond(member, ledger.held[queue], ledger.limit[queue])
    held, most = ledger.held[queue][kind], ledger.limit[queue][kind]
    amounts = _of(ledger.kinds[kind], held, most)
    return f"{_name(ledger, queue)} holds {amounts} it may have at most."


def at_guarantee(ledger: Ledger, member: Member, queue: int) -> str:
    """Say why a firm claim waits: what is never taken has to be guaranteed."""
    kind = _first_beyond(member, ledger.firm[queue], ledger.guarantee[queue])
    firm, most = ledger.firm[queue][kind], ledger.guarantee[queue][kind]
    start = "A claim of this priority is never taken, so it needs a guarantee"
    if not most:
        return f"{start}, and {_name(ledger, queue)} has none; another priority may start."
    amounts = _of(ledger.kinds[kind], firm, most)
    return f"{start}; such claims hold {amounts} guaranteed to {_name(ledger, queue)}."


def _budget_s(ledger: Ledger, queue: int) -> int | None:
    """The budget of a user who may get nothing more because it is used up, else None.

    Such a leaf is limited to what it holds, below what its queue lets each user have.
    """
    parent = ledger.queues[queue].parent
    if parent is None or not ledger.is_user[queue]:
        return None
    terms = ledger.tree.queues[parent].user_limits
    may_have, limit = terms.devices, ledger.limit[queue][0]
    is_lowered = may_have is None or limit < may_have
    return terms.budget_s if is_lowered and limit <= ledger.held[queue][0] else None


def _first_beyond(member: Member, held: Sequence[int], most: Sequence[int]) -> int:
    """The first kind without room for what a claim lacks; devices if there is room of all."""
    count = max(1, member.view.minimum - member.has)
    for kind, each in enumerate(member.each):
        if each and held[kind] + count * each > most[kind]:
            return kind
    return 0


def _of(kind: str, held: int, most: int) -> str:
    if kind == CPU:
        return f"{held / 1000:g} of the {most / 1000:g} cores"
    if kind == MEMORY:
        return f"{held / 2**30:g} of the {most / 2**30:g} GiB of host memory"
    what = " ".join([*kind.split(":")[1:], "devices"])
    return f"{held / WHOLE_DEVICE:g} of the {most / WHOLE_DEVICE:g} {what}"


def _name(ledger: Ledger, queue: int) -> str:
    return ledger.queues[queue].user or ledger.names[queue]
