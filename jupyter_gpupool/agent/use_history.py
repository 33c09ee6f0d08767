"""The last windows of one claim, kept to be told again: a manager that starts anew missed some.

Windows that follow one another are kept as one, up to a minute, so that little is kept. Pure.
"""

from collections import deque
from collections.abc import Callable

from jupyter_gpupool.protocol.link import ClaimUse

KEPT = 12
"""Minutes: more than a manager lets pass between two times that it writes down what it knows."""
LONGEST_MS = 60_000


class UseHistory:
    """What was told of one claim in the last minutes."""

    def __init__(self) -> None:
        self._windows: deque[ClaimUse] = deque(maxlen=KEPT)

    def keep(self, use: ClaimUse) -> None:
        """One more window, that follows the last one."""
        last = self._windows[-1] if self._windows else None
        if last is not None and _may_be_one(last, use):
            self._windows[-1] = merged(last, use)
        else:
            self._windows.append(use)

    def all(self) -> tuple[ClaimUse, ...]:
        """Oldest first."""
        return tuple(self._windows)


def merged(earlier: ClaimUse, later: ClaimUse) -> ClaimUse:
    """Two windows that follow one another as one."""
    active = earlier.active | later.active
    changes = {
        "begin_ms": earlier.begin_ms,
        "active": active,
        "quiet": (earlier.quiet & later.quiet) - active,
        "gpu_peak": _of_both(max, earlier.gpu_peak, later.gpu_peak),
        "gpu_mean": _mean(earlier, later),
    }
    return later.model_copy(update=changes)


def _may_be_one(earlier: ClaimUse, later: ClaimUse) -> bool:
    is_same = (earlier.leases, earlier.has_scheduler) == (later.leases, later.has_scheduler)
    follows = earlier.end_ms == later.begin_ms
    return is_same and follows and later.end_ms - earlier.begin_ms <= LONGEST_MS


def _of_both(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else choose(one, other)


def _mean(earlier: ClaimUse, later: ClaimUse) -> int | None:
    """By time, rounded down."""
    if earlier.gpu_mean is None or later.gpu_mean is None:
        return None
    first_ms, second_ms = earlier.end_ms - earlier.begin_ms, later.end_ms - later.begin_ms
    total = earlier.gpu_mean * first_ms + later.gpu_mean * second_ms
    return total // max(1, first_ms + second_ms)
