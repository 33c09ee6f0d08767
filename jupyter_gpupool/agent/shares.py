"""Watches what workers take of devices that they have a part of, and who takes too much. Pure.

Called by `housekeeping` each second. RMM's limits bind neither CuPy's own allocator nor PyTorch's,
so what counts is what NVML says of each process. Whoever takes too much is told, and has a grace to
give it back: memory that a program has merely cached can be freed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from jupyter_gpupool.pool.device import DeviceSample
from jupyter_gpupool.pool.units import format_bytes, format_duration

from .keys import ProcessKey

GRACE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a worker takes of its device, all that it started included."""

    key: ProcessKey
    used_bytes: int
    part_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What has to be said of a worker.

    Attributes:
        warning: What it takes, and what to do; "" once it keeps to its part again.
        kill_for: Why it has to go now; "" if it may stay.
    """

    key: ProcessKey
    warning: str
    kill_for: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Overrun:
    """A worker that took too much. It is one overrun until it has kept to its part for a grace.

    Attributes:
        within_since_s: Since when it keeps to its part again; None while it does not.
    """

    since_s: float
    warning: str
    within_since_s: float | None = None


class ShareWatch:
    """Remembers who takes too much, and since when.

    Args:
        grace_s: From the warning until a worker that takes too much has to go.
    """

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self._grace_s = grace_s
        self._overruns: dict[ProcessKey, _Overrun] = {}

    def look(self, taken: Iterable[Taken], now_s: float) -> tuple[Found, ...]:
        """Judge what workers take now; whoever is not among them is forgotten."""
        before, self._overruns = self._overruns, {}
        return tuple(self._judge(one, before.get(one.key), now_s) for one in taken)

    def _judge(self, one: Taken, before: _Overrun | None, now_s: float) -> Found:
        if one.used_bytes <= one.part_bytes:
            return self._within(one, before, now_s)
        overrun = before or _Overrun(since_s=now_s, warning=_warning(one, self._grace_s))
        self._overruns[one.key] = replace(overrun, within_since_s=None)
        is_over = now_s - overrun.since_s >= self._grace_s
        return Found(key=one.key, warning=overrun.warning, kill_for=_reason(one) if is_over else "")

    def _within(self, one: Taken, before: _Overrun | None, now_s: float) -> Found:
        if before is not None:
            since_s = now_s if before.within_since_s is None else before.within_since_s
            if now_s - since_s < self._grace_s:
                # Whoever comes and goes would else never be over for a whole grace.
                self._overruns[one.key] = replace(before, within_since_s=since_s)
        return Found(key=one.key, warning="")


def used_bytes(sample: DeviceSample, owners: Mapping[int, ProcessKey], key: ProcessKey) -> int:
    """What the processes of one worker take of a device, as far as NVML can say."""
    mine = (p.memory_bytes or 0 for p in sample.processes or () if owners.get(p.pid) == key)
    return sum(mine)


def _warning(one: Taken, grace_s: float) -> str:
    beyond = format_bytes(one.used_bytes - one.part_bytes)
    return (
        f"Worker {one.key.lease_id} uses {format_bytes(one.used_bytes)} of its device's memory,"
        f" and its part is {format_bytes(one.part_bytes)}: it is ended unless it frees {beyond}"
        f" within {format_duration(grace_s)}. Claim a larger part if it needs that much."
    )


def _reason(one: Taken) -> str:
    return (
        f"it used {format_bytes(one.used_bytes)} of its device's memory, and its part is"
        f" {format_bytes(one.part_bytes)}"
    )
