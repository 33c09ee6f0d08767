"""How much device time a claim held, used and left idle, and what was won back from it: pure.

Of leases, of what was recorded of the claim, and of what was taken from it, in quarters of an hour:
whole days of any time zone are made of these. What nobody saw is neither busy nor idle.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jupyter_gpupool.pool.idle_rule import DEFAULT_SIGNALS
from jupyter_gpupool.pool.signals import Sample
from jupyter_gpupool.scheduling.amounts import WHOLE_DEVICE

from .idle_runs import Gauge, Reading, read

QUARTER_S: Final = 900
"""Every zone's midnight is a multiple of this after UTC's."""
MOST_WON_S: Final = 8 * 3600.0
"""Nobody can know for how long a claim would have been held: no more than this is won at once."""
_USED: Final = Gauge(signals=DEFAULT_SIGNALS, gpu_below=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTime:
    """Device-seconds; what is held and neither busy nor idle is unknown."""

    held_s: float = 0.0
    busy_s: float = 0.0
    idle_s: float = 0.0
    won_s: float = 0.0

    def __add__(self, other: "DeviceTime") -> "DeviceTime":
        return DeviceTime(
            held_s=self.held_s + other.held_s,
            busy_s=self.busy_s + other.busy_s,
            idle_s=self.idle_s + other.idle_s,
            won_s=self.won_s + other.won_s,
        )

    @property
    def unknown_s(self) -> float:
        """Held, and nobody could tell how it was used."""
        return max(0.0, self.held_s - self.busy_s - self.idle_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """So many thousandths of a device from one moment to another, in seconds since 1970 (UTC)."""

    begin_s: float
    end_s: float
    share: int

    def within(self, begin_s: float, end_s: float) -> float:
        """Device-seconds of it in a window."""
        lasted_s = min(self.end_s, end_s) - max(self.begin_s, begin_s)
        return max(0.0, lasted_s) * self.share / WHOLE_DEVICE


def device_time(
    held: Sequence[Stretch], samples: Iterable[Sample], won: Sequence[Stretch]
) -> Mapping[int, DeviceTime]:
    """What one claim held, used and gave back, by the number of the quarter since 1970."""
    total: dict[int, DeviceTime] = {}
    for each in held:
        for quarter, begin_s, end_s in _quarters(each.begin_s, each.end_s):
            _add(total, quarter, DeviceTime(held_s=each.within(begin_s, end_s)))
    for begin_s, end_s, reading in _readings(samples):
        for quarter, from_s, to_s in _quarters(begin_s, end_s):
            seen_s = sum(each.within(from_s, to_s) for each in held)
            is_busy = reading is Reading.ACTIVE
            one = DeviceTime(busy_s=seen_s) if is_busy else DeviceTime(idle_s=seen_s)
            _add(total, quarter, one)
    for each in won:
        for quarter, begin_s, end_s in _quarters(each.begin_s, each.end_s):
            _add(total, quarter, DeviceTime(won_s=each.within(begin_s, end_s)))
    return total


def won_back(taken: Iterable[Stretch], back_s: Iterable[float]) -> Iterator[Stretch]:
    """What taking gave to others: until its user is back or the claim would have ended anyway.

    Args:
        taken: From each lease's end to where its claim would have ended by its time limit.
        back_s: When its user resumed it, or claimed anew.
    """
    returns = sorted(back_s)
    for each in taken:
        back = next((at_s for at_s in returns if at_s >= each.begin_s), each.end_s)
        end_s = min(each.end_s, back, each.begin_s + MOST_WON_S)
        if end_s > each.begin_s:
            yield Stretch(begin_s=each.begin_s, end_s=end_s, share=each.share)


def _readings(samples: Iterable[Sample]) -> Iterator[tuple[float, float, Reading]]:
    """What is known, each moment once: a clock that was set back must not count time twice."""
    until_s = float("-inf")
    for sample in sorted(samples, key=lambda each: each.at):
        end_s = sample.at.timestamp()
        begin_s = max(until_s, end_s - (sample.end_ms - sample.begin_ms) / 1000)
        reading = read(_USED, sample)
        until_s = max(until_s, end_s)
        if reading is not Reading.UNKNOWN and begin_s < end_s:
            yield begin_s, end_s, reading


def _quarters(begin_s: float, end_s: float) -> Iterator[tuple[int, float, float]]:
    quarter = int(begin_s // QUARTER_S)
    while quarter * QUARTER_S < end_s:
        yield quarter, max(begin_s, quarter * QUARTER_S), min(end_s, (quarter + 1) * QUARTER_S)
        quarter += 1


def _add(total: dict[int, DeviceTime], quarter: int, more: DeviceTime) -> None:
    total[quarter] = total.get(quarter, DeviceTime()) + more
