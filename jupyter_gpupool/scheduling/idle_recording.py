"""Keeping samples for later dry runs: those that show the same become one, so that weeks fit.

Pure; whoever records asks for each new sample whether it joins the last record. What is lost is
told the cautious way round: the highest use counts for all of a record.
"""

from bisect import bisect_right
from dataclasses import replace
from typing import Final

from jupyter_gpupool.pool.signals import LONGEST_WINDOW_MS, Sample

from .idle_dry_run import Recorded

_STEPS: Final = (1, 10, 20, 50, 100, 200, 500)
"""Thousandths of utilisation between which no rule is likely to tell."""


def joined(last: Recorded, new: Recorded) -> Recorded | None:
    """One record in place of two that follow each other and show the same, else None."""
    sample, later = last.sample, new.sample
    if not _show_the_same(sample, later) or not _follow(sample, later) or new.keep_ms is not None:
        return None
    return replace(last, sample=_both(sample, later)) if decided_alike(last, new) else None


def decided_alike(last: Recorded, new: Recorded) -> bool:
    """Whether all beside their samples and keeps is the same, as far as it decides.

    Whether anybody waits decides, and not who: in a pool where many wait that changes all the time.
    """
    is_wanted = bool(last.wanted_by) == bool(new.wanted_by)
    same = replace(new, sample=last.sample, keep_ms=last.keep_ms, wanted_by=last.wanted_by)
    return is_wanted and same == last


def _follow(sample: Sample, later: Sample) -> bool:
    is_next = sample.life == later.life and sample.end_ms == later.begin_ms
    return is_next and later.end_ms - sample.begin_ms <= LONGEST_WINDOW_MS


def _show_the_same(sample: Sample, later: Sample) -> bool:
    return (sample.active, sample.quiet, sample.orphaned, _step(sample), _knows_use(sample)) == (
        later.active,
        later.quiet,
        later.orphaned,
        _step(later),
        _knows_use(later),
    )


def _step(sample: Sample) -> int | None:
    return None if sample.gpu_peak is None else bisect_right(_STEPS, sample.gpu_peak)


def _knows_use(sample: Sample) -> bool:
    return sample.gpu_mean is not None


def _both(sample: Sample, later: Sample) -> Sample:
    peaks = [peak for peak in (sample.gpu_peak, later.gpu_peak) if peak is not None]
    return replace(
        later,
        begin_ms=sample.begin_ms,
        gpu_peak=max(peaks, default=None),
        gpu_mean=_mean(sample, later),
    )


def _mean(sample: Sample, later: Sample) -> int | None:
    """Of both, by their lengths, rounded up: a record never shows less use than there was."""
    if sample.gpu_mean is None or later.gpu_mean is None:
        return None
    one_ms, other_ms = sample.end_ms - sample.begin_ms, later.end_ms - later.begin_ms
    whole = sample.gpu_mean * one_ms + later.gpu_mean * other_ms
    return -(-whole // (one_ms + other_ms)) if one_ms + other_ms else later.gpu_mean
