"""What a claim's own user is told of idleness: of their devices, and what becomes of them.

The reason of warnings and of what is taken. Its moment stands beside it, for clocks differ.
"""

from dataclasses import dataclass

from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.idle_rule import Ground
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.units import format_duration

from .idle_wording import in_detail, rule_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a claim holds.

    Attributes:
        devices: Such as "2 A100".
        several: Whether that is more than one.
    """

    devices: str
    several: bool


_GROUNDS = {
    Ground.IDLE: "been idle for",
    Ground.ORPHANED: "had neither kernel nor client for",
    Ground.LITTLE_USED: "hardly been used in",
    Ground.HELD_LONG: "been held for",
}
_WILL = {
    OnIdle.SHRINK: "the claim goes down to its fewest workers.",
    OnIdle.HIBERNATE: "the claim hibernates: devices go back, results are kept.",
    OnIdle.RELEASE: "the claim ends then, and its results are lost.",
}
_DONE = {
    OnIdle.SHRINK: "the claim went down to its fewest workers.",
    OnIdle.HIBERNATE: "the claim hibernates, and its results are kept.",
    OnIdle.RELEASE: "the claim was ended.",
}


def warning_in_words(evidence: Evidence, held: Held) -> str:
    """Why, by which rule, and what comes of it unless something changes."""
    return f"{why_in_words(evidence, held)} By {rule_of(evidence)} {_WILL[evidence.action]}"


def taking_in_words(evidence: Evidence, held: Held) -> str:
    """The same once it is done."""
    return f"{why_in_words(evidence, held)} By {rule_of(evidence)} {_DONE[evidence.action]}"


def why_in_words(evidence: Evidence, held: Held) -> str:
    """What showed that nobody uses it; neither the rule nor what comes of it."""
    has = "have" if held.several else "has"
    lasted = format_duration(evidence.lasted_ms / 1000)
    return f"Your {held.devices} {has} {_GROUNDS[evidence.ground]} {lasted}{in_detail(evidence)}."
