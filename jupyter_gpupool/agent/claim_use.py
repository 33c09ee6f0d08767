"""What one claim does on this host, gathered look by look into windows of time. Pure.

Kept by `use_watch`. A look says what was active since the one before it; too long without one, and
what went on is unknown, which no rule takes for idle.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jupyter_gpupool.pool.ids import ClaimId, LeaseId
from jupyter_gpupool.pool.signals import WHOLE_USE, Signal
from jupyter_gpupool.protocol.activity import Activity
from jupyter_gpupool.protocol.link import ClaimUse

KNOWN_FOR_S = 5.0
"""What was seen holds for so long. Schedulers and devices are looked at each second; where the host
is very busy it takes longer, and what went by meanwhile shows in a scheduler's counts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """One look at a claim's devices on this host.

    Attributes:
        utilisations: Of each device, in thousandths; None is unknown.
        held: Memory the claim holds on each, in bytes; None is unknown.
    """

    leases: tuple[LeaseId, ...]
    utilisations: tuple[int | None, ...]
    held: tuple[int | None, ...]

    @property
    def peak(self) -> int | None:
        """The highest; None if any is unknown."""
        known = _all_known(self.utilisations)
        return max(known) if known else None

    @property
    def mean(self) -> int | None:
        """Rounded down; None if any is unknown."""
        known = _all_known(self.utilisations)
        return sum(known) // len(known) if known else None

    @property
    def held_bytes(self) -> int | None:
        """All together; None if any is unknown."""
        known = _all_known(self.held)
        return sum(known) if known else None


@dataclass(slots=True)
class _Gauge:
    """One signal: whether it was active since the last cut, and whether anybody looked."""

    looked_s: float
    was_active: bool = False
    was_blind: bool = False
    was_looked_at: bool = False
    last_active: bool = False

    def look(self, now_s: float, *, active: bool) -> None:
        if now_s - self.looked_s > KNOWN_FOR_S:
            self.was_blind = True
        self.looked_s, self.was_looked_at, self.last_active = now_s, True, active
        self.was_active = self.was_active or active

    def is_active(self, now_s: float) -> bool:
        """In a window that no look fell into, what the last one saw goes on."""
        goes_on = self.last_active and now_s - self.looked_s <= KNOWN_FOR_S
        return self.was_active or (goes_on and not self.was_looked_at)

    def is_known(self, now_s: float) -> bool:
        return now_s - self.looked_s <= KNOWN_FOR_S and not self.was_blind

    def cut(self) -> None:
        self.was_active = self.was_blind = self.was_looked_at = False


@dataclass(slots=True)
class _Gpu:
    """Utilisation since the last cut, in thousandths; without a look, what the last one saw."""

    seen: list[DeviceUse] = field(default_factory=list)
    last: DeviceUse | None = None

    def look(self, seen: DeviceUse) -> None:
        self.last = seen
        self.seen.append(seen)

    @property
    def peak(self) -> int | None:
        """The highest; None if any is unknown, or there was none."""
        known = _all_known(tuple(use.peak for use in self._looks))
        return min(max(known), WHOLE_USE) if known else None

    @property
    def mean(self) -> int | None:
        """Rounded down; None likewise."""
        known = _all_known(tuple(use.mean for use in self._looks))
        return sum(known) // len(known) if known else None

    @property
    def _looks(self) -> Sequence[DeviceUse]:
        return self.seen or ([] if self.last is None else [self.last])

    def cut(self) -> None:
        self.seen = []


@dataclass(slots=True)
class ClaimGauges:
    """All that is seen of one claim here.

    Attributes:
        begin_s: Where the window begins that is not cut yet.
    """

    begin_s: float
    _gauges: dict[Signal, _Gauge] = field(default_factory=dict)
    _gpu: _Gpu = field(default_factory=_Gpu)
    _activity: Activity | None = None
    _devices: DeviceUse | None = None
    _told_active: bool = True

    @property
    def has_stirred(self) -> bool:
        """Whether it is active, and was told quiet last: worth a report of its own."""
        return not self._told_active and any(g.was_active for g in self._gauges.values())

    def heard(self, activity: Activity, now_s: float) -> None:
        """Its scheduler says what goes on in it."""
        before, self._activity = self._activity, activity
        for signal, active in _of_scheduler(before, activity, now_s - self.begin_s):
            self._gauge(signal).look(now_s, active=active)

    def sampled(self, seen: DeviceUse, now_s: float) -> None:
        """Its devices were looked at."""
        before, self._devices = self._devices, seen
        self._gpu.look(seen)
        # The GPU's own threshold is the rule's; for a report in time anything at all will do.
        self._gauge(Signal.GPU).look(now_s, active=bool(seen.peak))
        if seen.held_bytes is not None:
            is_same = before is None or (before.leases, before.held) == (seen.leases, seen.held)
            self._gauge(Signal.MEMORY).look(now_s, active=not is_same)

    def cut(self, claim_id: ClaimId, now_s: float) -> ClaimUse:
        """The window until now; the next one begins here."""
        is_gpu_known = self._is_known(Signal.GPU, now_s)
        devices, activity = self._devices, self._activity
        told = [signal for signal in self._gauges if signal is not Signal.GPU]
        active = frozenset(s for s in told if self._gauges[s].is_active(now_s))
        use = ClaimUse(
            claim_id=claim_id,
            begin_ms=round(self.begin_s * 1000),
            end_ms=round(now_s * 1000),
            has_scheduler=activity is not None,
            leases=() if devices is None else devices.leases,
            active=active,
            quiet=frozenset(s for s in told if self._is_known(s, now_s)) - active,
            gpu_peak=self._gpu.peak if is_gpu_known else None,
            gpu_mean=self._gpu.mean if is_gpu_known else None,
            held_bytes=None if devices is None else devices.held_bytes,
            clients=activity.clients if activity and self._is_known(Signal.TASKS, now_s) else None,
            stuck=0 if activity is None else activity.stuck,
            actors=0 if activity is None else activity.actors,
        )
        self._told_active = any(gauge.is_active(now_s) for gauge in self._gauges.values())
        self.begin_s = now_s
        self._gpu.cut()
        for gauge in self._gauges.values():
            gauge.cut()
        return use

    def _gauge(self, signal: Signal) -> _Gauge:
        # What came before the first look is no more than a moment, or was not seen at all.
        return self._gauges.setdefault(signal, _Gauge(looked_s=self.begin_s))

    def _is_known(self, signal: Signal, now_s: float) -> bool:
        gauge = self._gauges.get(signal)
        return gauge is not None and gauge.is_known(now_s)


def _of_scheduler(
    before: Activity | None, now: Activity, window_s: float
) -> Iterator[tuple[Signal, bool]]:
    """What of a scheduler was active since it was last heard, which is no longer than the window.

    What is over between two looks shows in the counts of what was begun.
    """
    begun = before is not None and now.begun > before.begun
    ran = before is not None and now.runs_begun > before.runs_begun
    yield Signal.TASKS, begun or bool(now.processing or now.runnable or now.transfers)
    yield Signal.CALLS, ran or bool(now.runs)
    yield Signal.CLIENTS, now.quiet_s is not None and now.quiet_s <= window_s


def _all_known(values: tuple[int | None, ...]) -> tuple[int, ...]:
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else ()
