"""What a claim's user is told of what will be taken from it, with all that it takes to answer.

Part of `ClaimView` and `StatusView`. It is answered by POST /claims/{id}/keep_alive or
/claims/{id}/release.
"""

from datetime import datetime

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.request import OnIdle

from .bodies import View
from .evidence_view import EvidenceView


class KeepView(View):
    """How a claim can be kept now.

    Attributes:
        longest_s: For so long at most; 0 if nothing is left of what a day allows.
        asks_reason: Its user has to say why.
    """

    longest_s: float
    asks_reason: bool = False


class WarningView(View):
    """What will be taken from a claim, by which rule, and when.

    Attributes:
        reason: Why and by which rule, in a sentence.
        evidence: What a rule on idle claims rests on; None if others need what it holds.
        action: What such a rule does; None if others need what it holds.
        devices: What is held, such as "2 A100"; "" if it is not known.
        are_several: Whether that is more than one device.
        why: Why in a sentence that names no rule; "" if others need it.
        keep: How its user can keep it; None if nobody can postpone this.
        can_hibernate: Its results can be kept without its devices.
    """

    rule: str
    deadline: datetime
    reason: str
    evidence: EvidenceView | None = None
    action: OnIdle | None = None
    devices: str = ""
    are_several: bool = False
    why: str = ""
    keep: KeepView | None = None
    can_hibernate: bool = False


class WarnedView(View):
    """A claim of the caller's that is under a warning, in one look at the pool."""

    claim: ClaimId
    name: str
    warning: WarningView
