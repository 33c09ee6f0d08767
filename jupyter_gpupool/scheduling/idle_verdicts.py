"""What watching a claim comes to: a warning, its end, or that something is taken, with evidence.

Made by `idle.advance`; the manager carries it out, `idle_wording` puts it in words.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.idle_rule import Ground
from jupyter_gpupool.pool.request import OnIdle


class Call(StrEnum):
    """What has to be done now."""

    NOTHING = "nothing"
    WARN = "warn"
    """Tell its user, for the first time or because what was told has changed."""
    CLEAR = "clear"
    """What it was warned of will not happen."""
    TAKE = "take"
    """Act; said again with each sample until it is done."""


class Cleared(StrEnum):
    """Why a warning no longer holds."""

    USED = "used"
    KEPT = "kept"
    UNKNOWN = "unknown"
    """Too much of the time is not known."""
    UNWANTED = "unwanted"
    """Nobody waits any more, and the rule takes only what is wanted."""
    PROTECTED = "protected"
    """It is inside its minimum runtime."""
    RULE = "rule"
    """No rule asks for it any more: another policy, another hour, or nothing left to take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """What a claim's user has been told.

    Attributes:
        due_ms: When it will happen, by the watch's own time; never moved forward to an earlier one.
    """

    rule: str
    ground: Ground
    action: OnIdle
    due_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a sample comes to.

    Attributes:
        evidence: Of a warning or a taking, else None.
        deadline: What to tell people, by the calendar of the last sample; of a warning.
        cleared: Why, if the warning is over.
    """

    call: Call
    evidence: Evidence | None = None
    deadline: datetime | None = None
    cleared: Cleared | None = None


NOTHING = Verdict(call=Call.NOTHING)
