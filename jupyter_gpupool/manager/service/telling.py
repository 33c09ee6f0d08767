"""How often a claim's own processes may have something told of them. Pure: time is passed in.

Called by `hosts.py`. What a host reports of schedulers and workers can be a user's own words, and a
process that takes them back and says them again would have an event written with each report. The
first ones are told at once. What is held back is not lost: hosts report all of it again, at the
latest with their next sign of life.
"""

from collections.abc import Sequence

from jupyter_gpupool.pool.claim_events import (
    ClaimEvent,
    ProblemsChanged,
    ResultsBack,
    ResultsLost,
    SchedulerUp,
)

MOST_TOLD = 5
WINDOW_S = 30.0
"""One in six seconds on average, and a few at once when things go wrong together."""
_OWN_WORDS = (ProblemsChanged, ResultsLost, SchedulerUp)


def is_own_word(events: Sequence[ClaimEvent]) -> bool:
    """Whether nothing happened but that a process says something else of itself.

    With anything else, it is told: that cannot happen again and again, and may rest on it.
    """
    if len(events) != 1:
        return False
    is_unread = isinstance(events[0], ResultsBack) and events[0].unread > 0
    return is_unread or isinstance(events[0], _OWN_WORDS)


def with_one_more(told_s: Sequence[float], now_s: float) -> tuple[float, ...] | None:
    """When something was told lately, if it is told now too; None if it has to wait.

    Args:
        told_s: When it was before, in monotonic seconds.
        now_s: By the same clock.
    """
    lately = tuple(at_s for at_s in told_s if now_s - at_s < WINDOW_S)
    return None if len(lately) >= MOST_TOLD else (*lately, now_s)
