"""Passes that failed for a defect of ours: counted, and told while they are news.

Noted by the service and by `waits`. Nothing else depends on it: whoever holds devices keeps them,
and what the last pass that worked has said stays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

_NEWS_FOR_S = 3600.0
_MOST_WHY = 300


@dataclass(slots=True)
class PassFailures:
    """Since the manager's start.

    Args:
        now: What time it is.

    Attributes:
        count: How many there were.
        why: What the last one ran into.
    """

    now: Callable[[], datetime]
    count: int = 0
    why: str = ""
    _last: datetime | None = None

    def note(self, error: Exception) -> None:
        """One more."""
        self.count += 1
        self.why = f"{type(error).__name__}: {error}"[:_MOST_WHY]
        self._last = self.now()

    @property
    def text(self) -> str:
        """What everybody may know of them; "" once the last one is an hour old."""
        if self._last is None or (self.now() - self._last).total_seconds() > _NEWS_FOR_S:
            return ""
        return (
            f"{self.count} of the manager's scheduling passes failed for a defect, the last one at"
            f" {self._last:%H:%M} UTC; what was decided before holds on."
        )
