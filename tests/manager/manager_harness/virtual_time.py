"""Clocks that a test turns by hand."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from jupyter_gpupool.manager.clock import Clock

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@dataclass
class ManualClock:
    """Both clocks, turned by hand."""

    wall: datetime = START
    monotonic_s: float = 1000.0

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        self.wall += timedelta(seconds=seconds)
        self.monotonic_s += seconds

    def clock(self) -> Clock:
        """As the service takes it."""
        return Clock(now=lambda: self.wall, monotonic=lambda: self.monotonic_s)
