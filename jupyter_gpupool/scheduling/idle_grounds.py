"""Which grounds of a rule stand against a claim after a sample, and how far each has come.

Called by `idle.judge`; decides nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.idle_match import Subject
from jupyter_gpupool.pool.idle_rule import Ground, IdleRule, Terms
from jupyter_gpupool.pool.request import OnIdle

from .idle_runs import Run, idle_gauge, orphan_gauge
from .idle_use import PARTS, Use, part_ms

if TYPE_CHECKING:
    from .idle_watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A ground that has lasted long enough for a warning.

    Attributes:
        lasted_ms: Known to have lasted so long.
        left_ms: Until it has lasted long enough for the action.
        notice_ms: What a user has at least between warning and action.
        is_sure: The last sample shows it; else it is only bridged, and nothing may be done.
    """

    ground: Ground
    action: OnIdle
    lasted_ms: int
    left_ms: int
    notice_ms: int
    is_sure: bool
    unknown_ms: int = 0
    samples: int = 0
    gpu: int | None = None

    @property
    def due_in_ms(self) -> int:
        """When the action comes if the warning is given now."""
        return max(self.left_ms, self.notice_ms)


def standings(rule: IdleRule, watch: "Watch", subject: Subject) -> Iterator[Standing]:
    """All grounds of a rule that stand now and that allow something to be done."""
    idle = rule.idle_terms(subject.wish)
    runs = {run.gauge: run for run in watch.runs}
    found = (
        idle and _lasting(Ground.IDLE, idle, runs.get(idle_gauge(rule))),
        rule.orphaned and _lasting(Ground.ORPHANED, rule.orphaned, runs.get(orphan_gauge(rule))),
        _little_used(rule, watch),
        rule.longest and _held_long(rule.longest, watch),
    )
    for standing in found:
        action = standing and rule.can_do(standing.action, subject)
        if standing and action:
            yield replace(standing, action=action)


def _lasting(ground: Ground, terms: Terms, run: Run | None) -> Standing | None:
    if run is None or not run.idle_ms or run.idle_ms < in_ms(terms.warn_s):
        return None
    return Standing(
        ground=ground,
        action=terms.action,
        lasted_ms=run.idle_ms,
        left_ms=max(0, in_ms(terms.after_s) - run.idle_ms),
        notice_ms=in_ms(terms.notice_s),
        is_sure=not run.gap_ms,
        unknown_ms=run.unknown_ms,
        samples=run.samples,
        gpu=run.gpu_peak,
    )


def _little_used(rule: IdleRule, watch: "Watch") -> Standing | None:
    least = rule.least_use
    use = least and _use(watch, part_ms(least))
    if not least or not use or not use.is_below(least.below):
        return None
    return Standing(
        ground=Ground.LITTLE_USED,
        action=least.action,
        lasted_ms=PARTS * use.part_ms,
        left_ms=0,
        notice_ms=in_ms(least.notice_s),
        is_sure=watch.knows_use,
        gpu=use.mean,
    )


def _use(watch: "Watch", length_ms: int) -> Use | None:
    return next((use for use in watch.uses if use.part_ms == length_ms), None)


def _held_long(terms: Terms, watch: "Watch") -> Standing | None:
    if watch.now_ms < in_ms(terms.warn_s):
        return None
    return Standing(
        ground=Ground.HELD_LONG,
        action=terms.action,
        lasted_ms=watch.now_ms,
        left_ms=max(0, in_ms(terms.after_s) - watch.now_ms),
        notice_ms=in_ms(terms.notice_s),
        is_sure=True,
    )


def in_ms(seconds: float) -> int:
    """The policy's seconds in the whole milliseconds of a watch."""
    return round(seconds * 1000)
