"""A warning in words: what goes back, when, why, and how to answer. Pure.

Called by `card`, `answers`, `voice`, the widget and the command line. Its clock times are in the
zone of the moment it is read at.
"""

import shlex
from datetime import datetime

from jupyter_gpupool.pool.hibernation import KEPT_RESULTS
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.protocol.keeping_view import KeepingView
from jupyter_gpupool.protocol.warned import KeepView, WarningView

from .moments import clock

KEPT_FOR_S = 3600.0
"""What a keep of one press asks for, if the policy allows as much."""
_MINUTE_S = 60
_HOUR_MIN = 60
_MOST_KEYS = 3
_KEY_SHOWN = 40


def keeps_nothing(keeping: KeepingView | None) -> bool:
    """Whether a claim that hibernates had no result to keep."""
    return keeping is not None and not keeping.held


def warning_sentence(
    warning: WarningView, now: datetime, keeping: KeepingView | None = None
) -> str:
    """Why, and what becomes of the claim when; `keeping` is what is known of its results.

    "Your 2 A100 have been idle for 15 min (no tasks, GPU 0 %, 31 GiB held). They go back at 14:20;
    results are kept."
    """
    when = clock(warning.deadline, now)
    if warning.rule == KEPT_RESULTS:
        until = "It may hibernate" if keeps_nothing(keeping) else "Results are kept"
        return f"{warning.reason} {until} until {when}."
    if warning.action is None or not warning.why:
        return f"Goes back {when}: {warning.reason}"
    back = "They go back" if warning.are_several else "It goes back"
    match warning.action:
        case OnIdle.HIBERNATE:
            return f"{warning.why} {back} at {when}; results are kept."
        case OnIdle.RELEASE:
            return f"{warning.why} {back} at {when}; results are lost."
        case OnIdle.SHRINK:
            return f"{warning.why} The claim goes down to its fewest workers at {when}."


def keep_minutes(keep: KeepView | None) -> int:
    """For how long a press may keep it, in whole minutes; 0 if it cannot be kept."""
    return 0 if keep is None else int(min(KEPT_FOR_S, keep.longest_s)) // _MINUTE_S


def unkept_keys(keeping: KeepingView | None) -> str:
    """Which results cannot be kept, the first few by their keys: "a, b, c (+5)"; "" if all can."""
    if keeping is None or not keeping.unkept_count:
        return ""
    keys = [each.key[:_KEY_SHOWN] for each in keeping.unkept[:_MOST_KEYS]]
    more = keeping.unkept_count - len(keys)
    return ", ".join(keys) + (f" (+{more})" if more > 0 else "")


def answers_text(name: str, warning: WarningView, command: str) -> str:
    """How to answer, as commands; `command` is what they begin with, such as "%gpupool"."""
    if warning.rule == KEPT_RESULTS:
        return f"Resume it: {command} resume {shlex.quote(name)}"
    quoted, minutes = shlex.quote(name), keep_minutes(warning.keep)
    length = "1h" if minutes == _HOUR_MIN else f"{minutes}min"
    reason = ' --reason "…"' if warning.keep is not None and warning.keep.asks_reason else ""
    keep = f"Keep it: {command} keep {quoted} {length}{reason} · " if minutes else ""
    return f"{keep}Release it now: {command} release {quoted}"
