"""What a warning or a taking for idleness rests on: kept with events, shown to users.

Made by `scheduling.idle` of samples and the policy.
"""

from dataclasses import dataclass
from datetime import datetime

from .idle_rule import Ground
from .ids import ClaimId
from .request import OnIdle
from .signals import Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a decision rests on.

    Attributes:
        revision: Of the policy.
        lasted_ms: For how long the ground is known to have lasted; the window, if use is little.
        unknown_ms: What was not known in between.
        since, until: The calendar's words for that time.
        samples: That showed it.
        gpu: Utilisation in thousandths: the highest one, or the mean if use is little; None if it
            is not known.
        held_bytes: Device memory held at the end; None if it is not known.
        active, quiet: What the signals showed at the end. Those in neither were not known.
        wanted_by: Who was waiting.
    """

    rule: str
    revision: int
    ground: Ground
    action: OnIdle
    lasted_ms: int
    unknown_ms: int
    since: datetime
    until: datetime
    samples: int
    gpu: int | None
    held_bytes: int | None
    active: frozenset[Signal]
    quiet: frozenset[Signal]
    wanted_by: tuple[ClaimId, ...]
