"""Whether a worker that ended by itself is forked again. Pure: time is passed in.

Called by `endings` for each worker that ends. A crash is forgiven three times in five minutes. A
clean end is what `client.restart()` does to a worker without a Nanny, so it is no crash; it is
bounded as well, for a worker that always ends at once would otherwise be forked for ever.
"""

from dataclasses import dataclass, replace

from jupyter_gpupool.pool.units import format_duration

MOST_CRASHES = 3
MOST_CLEAN_ENDS = 60
WINDOW_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """How a worker ended before, in seconds of the monotonic clock, oldest first."""

    crashes_s: tuple[float, ...] = ()
    clean_ends_s: tuple[float, ...] = ()
    restarts: int = 0


NO_HISTORY = History()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of the worker: forked again, or given up for `reason`."""

    history: History
    again: bool
    reason: str = ""


def after_end(history: History, *, clean: bool, now_s: float) -> Verdict:
    """Decide on a worker that ended just now; its end is part of the history given back."""
    history = _with_end(_recent(history, now_s), clean=clean, now_s=now_s)
    reason = _too_many(history)
    if reason:
        return Verdict(history=history, again=False, reason=reason)
    return Verdict(history=replace(history, restarts=history.restarts + 1), again=True)


def _recent(history: History, now_s: float) -> History:
    since_s = now_s - WINDOW_S
    return replace(
        history,
        crashes_s=tuple(at_s for at_s in history.crashes_s if at_s > since_s),
        clean_ends_s=tuple(at_s for at_s in history.clean_ends_s if at_s > since_s),
    )


def _with_end(history: History, *, clean: bool, now_s: float) -> History:
    if clean:
        return replace(history, clean_ends_s=(*history.clean_ends_s, now_s))
    return replace(history, crashes_s=(*history.crashes_s, now_s))


def _too_many(history: History) -> str:
    if len(history.crashes_s) > MOST_CRASHES:
        return f"it ended {len(history.crashes_s)} times within {format_duration(WINDOW_S)}"
    if len(history.clean_ends_s) > MOST_CLEAN_ENDS:
        return f"it was closed {len(history.clean_ends_s)} times within {format_duration(WINDOW_S)}"
    return ""
