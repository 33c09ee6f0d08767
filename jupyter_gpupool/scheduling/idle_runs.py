"""For how long a claim is known to have been idle: one run for each way in which rules ask.

Kept by `idle.advance`, in whole milliseconds. Unknown is never idle: it adds nothing to a run, and
too much of it ends one, for what was not seen may have been work.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from jupyter_gpupool.pool.idle_rule import IdleRule
from jupyter_gpupool.pool.signals import Sample, Signal

BRIDGED_MS: Final = 60_000
"""What may be unknown at a stretch without ending a run: the restart of an agent, a slow answer."""
BRIDGED_PART: Final = 10
"""And one part in so many of what is known, over the whole run."""
_WORK: Final = frozenset({Signal.TASKS, Signal.CALLS, Signal.GPU})
"""Signals of an orphan: its kernels are gone, and what they left in memory is no work."""


class Reading(Enum):
    """What a sample says of a gauge."""

    ACTIVE = auto()
    QUIET = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """What has to be quiet.

    Attributes:
        gpu_below: In thousandths; counts only with `Signal.GPU`.
        orphaned: It also counts only while nobody is left who used the claim.
    """

    signals: frozenset[Signal]
    gpu_below: int
    orphaned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The last stretch of time without activity.

    Attributes:
        idle_ms: Known to be idle.
        unknown_ms: Unknown in between.
        gap_ms: Unknown since it was last known; 0 if it is known now.
        gpu_peak: The highest utilisation in it, in thousandths; None if it was never known.
        samples: That showed it idle.
    """

    gauge: Gauge
    idle_ms: int = 0
    unknown_ms: int = 0
    gap_ms: int = 0
    gpu_peak: int | None = None
    samples: int = 0


def idle_gauge(rule: IdleRule) -> Gauge:
    """What a rule asks of a claim that is idle."""
    return Gauge(signals=rule.signals, gpu_below=rule.gpu_below)


def orphan_gauge(rule: IdleRule) -> Gauge:
    """What a rule asks of an orphan: whatever still runs may run to its end."""
    signals = rule.signals & _WORK | {Signal.TASKS}
    return Gauge(signals=signals, gpu_below=rule.gpu_below, orphaned=True)


def gauges_of(rules: Iterable[IdleRule]) -> tuple[Gauge, ...]:
    """All that a policy's rules ask, each once: those of any rule may decide at another hour."""
    pairs = ((idle_gauge(rule), orphan_gauge(rule)) for rule in rules)
    return tuple(dict.fromkeys(gauge for pair in pairs for gauge in pair))


def read(gauge: Gauge, sample: Sample) -> Reading:
    """What a sample says of a gauge: active if anything is, quiet if everything is known to be."""
    asks_gpu = Signal.GPU in gauge.signals
    asked = gauge.signals - {Signal.GPU}
    if asks_gpu and sample.gpu_peak is not None and sample.gpu_peak >= gauge.gpu_below:
        return Reading.ACTIVE
    if asked & sample.active or (gauge.orphaned and sample.orphaned is False):
        return Reading.ACTIVE
    is_known = asked <= sample.quiet and (not asks_gpu or sample.gpu_peak is not None)
    is_known = is_known and (not gauge.orphaned or sample.orphaned is True)
    return Reading.QUIET if is_known else Reading.UNKNOWN


def extend(run: Run, sample: Sample, gap_ms: int | None, fresh_ms: int) -> Run:
    """A run after one more sample, of which `fresh_ms` were not covered by an earlier one.

    Between the last sample and this one nothing was seen for `gap_ms`; None: nobody can know.
    """
    reading = read(run.gauge, sample)
    # Activity counts even in a sample that comes late: what was bridged was then no gap.
    if gap_ms is None or reading is Reading.ACTIVE:
        run = Run(gauge=run.gauge)
    else:
        run = _without_sight(run, gap_ms)
    if reading is Reading.UNKNOWN:
        return _without_sight(run, fresh_ms)
    return _quiet(run, sample, fresh_ms) if reading is Reading.QUIET and fresh_ms else run


def _quiet(run: Run, sample: Sample, fresh_ms: int) -> Run:
    peaks = [peak for peak in (run.gpu_peak, sample.gpu_peak) if peak is not None]
    return replace(
        run,
        idle_ms=run.idle_ms + fresh_ms,
        gap_ms=0,
        gpu_peak=max(peaks, default=None),
        samples=run.samples + 1,
    )


def _without_sight(run: Run, length_ms: int) -> Run:
    unknown_ms, gap_ms = run.unknown_ms + length_ms, run.gap_ms + length_ms
    if gap_ms > BRIDGED_MS or unknown_ms * BRIDGED_PART > run.idle_ms:
        return Run(gauge=run.gauge)
    return replace(run, unknown_ms=unknown_ms, gap_ms=gap_ms) if length_ms else run
