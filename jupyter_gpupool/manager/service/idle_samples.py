"""One sample of a claim, of what all its hosts and kernels say: pure.

The windows are those of its scheduler's host; what other hosts saw of its devices is laid beside
them by the manager's clock. Called by `idle_watching`.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jupyter_gpupool.pool.ids import LeaseId
from jupyter_gpupool.pool.signals import Presence, Sample, Signal, orphaned
from jupyter_gpupool.protocol.using import KernelState

from .activity import KernelWord
from .sightings import Sighting

HOLDS_FOR_S = 15.0
"""What a host saw last is true for so long: it reports each ten seconds, and at once what stirs."""
_OF_SCHEDULER = (Signal.TASKS, Signal.CALLS, Signal.CLIENTS)
_HERE = frozenset({KernelState.BUSY, KernelState.IDLE, KernelState.STARTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What there is beside a window.

    Attributes:
        elsewhere: Windows of other hosts of the claim.
        leases: All that it holds: of each one's devices something has to be known.
        gone: How many of its kernels are known to be gone for good.
    """

    elsewhere: Sequence[Sighting]
    leases: Collection[LeaseId]
    kernels: Sequence[KernelWord]
    gone: int
    now: datetime
    now_s: float


def sample_of(window: Sighting, beside: Surroundings) -> Sample:
    """What was seen of the claim in this window."""
    seen = (window, *_overlapping(window, beside.elsewhere))
    active, quiet = _signals(window, seen, beside)
    gpu_peak, gpu_mean, held_bytes = _devices(seen, beside.leases)
    return Sample(
        life=window.life,
        begin_ms=window.use.begin_ms,
        end_ms=window.use.end_ms,
        at=beside.now - timedelta(seconds=max(0.0, beside.now_s - window.end_s)),
        active=active,
        quiet=quiet,
        gpu_peak=gpu_peak,
        gpu_mean=gpu_mean,
        held_bytes=held_bytes,
        orphaned=orphaned(tuple(_users(window, beside))),
    )


def _overlapping(window: Sighting, elsewhere: Sequence[Sighting]) -> Iterator[Sighting]:
    """Windows of other hosts at that time; the last one of each holds on for a while."""
    last = {each.host_id: each for each in elsewhere}
    for each in elsewhere:
        end_s = each.end_s + (HOLDS_FOR_S if last[each.host_id] is each else 0.0)
        if each.begin_s < window.end_s and end_s > window.begin_s:
            yield each


def _signals(
    window: Sighting, seen: Sequence[Sighting], beside: Surroundings
) -> tuple[frozenset[Signal], frozenset[Signal]]:
    states = {signal: _told(signal, (window,)) for signal in _OF_SCHEDULER}
    with_devices = [each for each in seen if each.use.leases]
    states[Signal.MEMORY] = _told(Signal.MEMORY, with_devices)
    states[Signal.KERNEL] = _kernels(beside, beside.now_s - window.begin_s)
    active = frozenset(signal for signal, state in states.items() if state is True)
    return active, frozenset(signal for signal, state in states.items() if state is False)


def _told(signal: Signal, seen: Sequence[Sighting]) -> bool | None:
    """Whether it was active; None if that is not known."""
    if any(signal in each.use.active for each in seen):
        return True
    return False if seen and all(signal in each.use.quiet for each in seen) else None


def _kernels(beside: Surroundings, since_s: float) -> bool | None:
    """Whether a kernel was busy in the last `since_s`; a claim that has none is used by none."""
    words = beside.kernels
    if any(word.state is KernelState.BUSY for word in words):
        return True
    alive = [word for word in words if word.state is not KernelState.DEAD]
    if any(word.quiet_for_s is not None and word.quiet_for_s < since_s for word in alive):
        return True
    is_known = all(
        word.state is KernelState.IDLE and word.quiet_for_s is not None for word in alive
    )
    return False if is_known else None


def _devices(
    seen: Sequence[Sighting], leases: Collection[LeaseId]
) -> tuple[int | None, int | None, int | None]:
    """Peak and mean of utilisation, and memory that is held; None where anything is unknown."""
    uses = [each.use for each in seen if each.use.leases]
    told = {lease for use in uses for lease in use.leases}
    if not uses or not told.issuperset(leases):
        return None, None, None
    peaks = [use.gpu_peak for use in uses if use.gpu_peak is not None]
    means = [(use.gpu_mean, len(use.leases)) for use in uses if use.gpu_mean is not None]
    is_known = len(peaks) == len(means) == len(uses)
    latest = {each.host_id: each.use.held_bytes for each in seen if each.use.leases}
    held = [held for held in latest.values() if held is not None]
    total = sum(mean * count for mean, count in means)
    return (
        max(peaks) if is_known else None,
        total // max(1, sum(count for _, count in means)) if is_known else None,
        sum(held) if len(held) == len(latest) else None,
    )


def _users(window: Sighting, beside: Surroundings) -> Iterator[Presence]:
    """Kernels, and the Dask clients that are connected, whoever's they are."""
    yield from (Presence.GONE for _ in range(beside.gone))
    for word in beside.kernels:
        if word.state is KernelState.DEAD:
            yield Presence.GONE
        else:
            yield Presence.HERE if word.state in _HERE else Presence.UNKNOWN
    if window.use.clients is None:
        yield Presence.UNKNOWN
    elif window.use.clients:
        yield Presence.HERE
