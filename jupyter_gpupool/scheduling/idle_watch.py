"""What is remembered of a claim while it is watched, and how a sample moves it on.

A watch has a time of its own: it begins with the first sample and goes on with the clock of the
life that samples come from; where another life begins it goes on from where it was. So it is
monotonic, it survives restarts of everything, and a claim that was hibernated begins a new one. It
is kept with the claim, and grows with the policy, not with time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from jupyter_gpupool.pool.idle_rule import IdleRule
from jupyter_gpupool.pool.signals import Sample

from .idle_runs import Run, extend, gauges_of
from .idle_use import Use, parts_of, used
from .idle_verdicts import Warned

DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """One postponement by a user.

    Attributes:
        at_ms: When it was asked for, by the watch's time.
        for_ms: For how long; less if it was taken back earlier.
    """

    at_ms: int
    for_ms: int

    @property
    def until_ms(self) -> int:
        """When it is over."""
        return self.at_ms + self.for_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What is remembered of a claim.

    Attributes:
        life, until_ms: Until when it has been seen, by which clock; "" before the first sample.
        now_ms: The watch's own time.
        knows_use: The last sample told its devices' use.
        keeps: Postponements of the last 24 hours, oldest first.
        warned: What its user was told last, as long as it holds.
    """

    life: str = ""
    until_ms: int = 0
    now_ms: int = 0
    runs: tuple[Run, ...] = ()
    uses: tuple[Use, ...] = ()
    knows_use: bool = False
    keeps: tuple[Keep, ...] = ()
    warned: Warned | None = None

    @property
    def is_kept(self) -> bool:
        """Whether its user has postponed whatever is taken as idle."""
        return bool(self.keeps) and self.keeps[-1].until_ms > self.now_ms


def moved(watch: Watch, sample: Sample, rules: Sequence[IdleRule]) -> Watch:
    """The watch after one more sample, before anything is decided.

    What a rule asks that no rule asked before begins with this sample: a new policy never counts
    time against a claim that was not counted so when it passed.
    """
    gap_ms, fresh_ms = _progress(watch, sample)
    now_ms = watch.now_ms + (gap_ms or 0) + fresh_ms
    runs = {run.gauge: run for run in watch.runs}
    uses = {use.part_ms: use for use in watch.uses}
    gauges, parts = gauges_of(rules), parts_of(rules)
    return replace(
        watch,
        life=sample.life,
        until_ms=_seen_until(watch, sample),
        now_ms=now_ms,
        runs=tuple(extend(runs.get(g) or Run(gauge=g), sample, gap_ms, fresh_ms) for g in gauges),
        uses=tuple(used(uses.get(p) or Use(part_ms=p), sample.gpu_mean, fresh_ms) for p in parts),
        knows_use=sample.gpu_mean is not None,
        keeps=tuple(keep for keep in watch.keeps if keep.until_ms > now_ms - DAY_MS),
    )


def _progress(watch: Watch, sample: Sample) -> tuple[int | None, int]:
    """How long nothing was seen before a sample, and how much of it is new."""
    if sample.life != watch.life:
        return None, sample.end_ms - sample.begin_ms
    gap_ms = max(0, sample.begin_ms - watch.until_ms)
    return gap_ms, max(0, sample.end_ms - max(sample.begin_ms, watch.until_ms))


def _seen_until(watch: Watch, sample: Sample) -> int:
    return sample.end_ms if sample.life != watch.life else max(watch.until_ms, sample.end_ms)
