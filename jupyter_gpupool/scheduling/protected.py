"""What may not be asked of a claim: its first minutes, and a firm one at all."""

from .ledger import Ledger, Member, Turn
from .protection import protected_s


def is_protected(ledger: Ledger, member: Member, claimant: Member) -> bool:
    """Whether a claim keeps what it holds when this claimant asks, also what it has just got."""
    if member.view.firm or member.turn in (Turn.SERVED, Turn.MOVED):
        return True
    started = member.view.started_s
    if started is None or not ledger.protects:
        return False
    least_s = protected_s(ledger.tree, claimant=claimant.view.queue, victim=member.view.queue)
    return ledger.now_s - started < least_s
