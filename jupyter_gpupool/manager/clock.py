"""The two clocks of the manager, handed in so that tests turn them.

Wall time is what people read; durations run on monotonic time, which nobody can set back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Wall time, aware and in UTC, and monotonic time in seconds."""

    now: Callable[[], datetime] = _utc_now
    monotonic: Callable[[], float] = time.monotonic
