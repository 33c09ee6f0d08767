"""What the judgement of a claim is called by people: one sentence for each.

Used for warnings, events and ended claims. Deadlines are told beside it, for clocks of readers
differ.
"""

from collections.abc import Iterator

from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.idle_rule import Ground
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.pool.units import format_bytes, format_duration, plural

from .idle_verdicts import Cleared

_ACTIONS = {
    OnIdle.SHRINK: "It goes down to its fewest workers.",
    OnIdle.HIBERNATE: "Its devices go back; its results are kept.",
    OnIdle.RELEASE: "It is released, and its results are lost.",
}
_QUIET = {
    Signal.TASKS: "no tasks",
    Signal.CALLS: "no calls",
    Signal.KERNEL: "kernel at rest",
}
_CLEARED = {
    Cleared.USED: "It is used again.",
    Cleared.KEPT: "Its user keeps it.",
    Cleared.UNKNOWN: "It is not known any more whether it was idle.",
    Cleared.UNWANTED: "Nobody waits for its devices any more.",
    Cleared.PROTECTED: "It is inside its minimum runtime.",
    Cleared.RULE: "No rule asks for its devices any more.",
}


def in_words(evidence: Evidence) -> str:
    """Why, by which rule, and what comes of it."""
    why = f"{_ground(evidence)}{in_detail(evidence)}"
    return f"{why}, by {rule_of(evidence)}. {_ACTIONS[evidence.action]}"


def why_cleared(cleared: Cleared) -> str:
    """Why what was announced will not happen."""
    return _CLEARED[cleared]


def _ground(evidence: Evidence) -> str:
    lasted = format_duration(evidence.lasted_ms / 1000)
    match evidence.ground:
        case Ground.IDLE:
            return f"Idle for {lasted}"
        case Ground.ORPHANED:
            return f"Without kernel and client for {lasted}"
        case Ground.LITTLE_USED:
            return f"Hardly used in {lasted}"
        case Ground.HELD_LONG:
            return f"Held for {lasted}"


def in_detail(evidence: Evidence) -> str:
    """What each signal showed and who waits, to follow the ground: " (no tasks) while …"."""
    details = ", ".join(_shown(evidence))
    shown = f" ({details})" if details else ""
    return f"{shown} while {_waiting(evidence)}" if evidence.wanted_by else shown


def rule_of(evidence: Evidence) -> str:
    """The rule that judged, and the policy it stands in."""
    return f'rule "{evidence.rule}" of revision {evidence.revision} of the policy'


def _shown(evidence: Evidence) -> Iterator[str]:
    yield from (words for signal, words in _QUIET.items() if signal in evidence.quiet)
    if evidence.gpu is not None:
        kind = " on the mean" if evidence.ground is Ground.LITTLE_USED else ""
        yield f"GPU {evidence.gpu / 10:.0f} %{kind}"
    if evidence.held_bytes is not None:
        yield f"{format_bytes(evidence.held_bytes)} held"


def _waiting(evidence: Evidence) -> str:
    count = len(evidence.wanted_by)
    return f"{plural(count, 'claim')} {'waits' if count == 1 else 'wait'} for it"
