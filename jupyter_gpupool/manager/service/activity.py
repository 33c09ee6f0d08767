"""What Jupyter servers saw of the kernels that use claims: in memory alone, the last word counts.

Told by the API; read for every claim that is shown. A server that stops telling makes its kernels
unknown, never idle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from jupyter_gpupool.manager.clock import Clock
from jupyter_gpupool.pool.ids import ClaimId, KernelId
from jupyter_gpupool.pool.kernel import Kernel
from jupyter_gpupool.protocol.using import KernelActivity, KernelState, KernelView

FRESH_FOR_S = 120.0
HOLDS_FOR_S = 45.0
"""What a server said holds for so long: it tells of each change, and of all each half minute."""
_WITHOUT_QUIET = frozenset({KernelState.BUSY, KernelState.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    of: Kernel
    state: KernelState
    quiet_since: datetime | None
    quiet_s: float | None
    at: datetime
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWord:
    """What is known of a kernel now.

    Attributes:
        state: UNKNOWN if nothing was heard of it for a while.
        quiet_for_s: Until now; None while it is busy, or unknown.
        was_heard: Whether anything was ever heard of this very process.
    """

    state: KernelState
    quiet_for_s: float | None = None
    was_heard: bool = False


class Activity:
    """The last word on each kernel."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[ClaimId, dict[KernelId, _Seen]] = {}

    def take(
        self, claim_id: ClaimId, kernels: Iterable[Kernel], told: Mapping[str, KernelActivity]
    ) -> None:
        """Take in what was told, by kernel, of a claim's kernels; that of others is ignored."""
        before, seen = self._seen.get(claim_id, {}), {}
        for kernel in kernels:
            last, news = _of(kernel, before), told.get(kernel.id)
            if news is not None and not _is_dead(last):
                last = self._now_seen(kernel, news)
            if last is not None:
                seen[kernel.id] = last
        self._seen[claim_id] = seen

    def forget(self, claim_ids: Iterable[ClaimId]) -> None:
        """These claims have ended."""
        for claim_id in claim_ids:
            self._seen.pop(claim_id, None)

    def views(self, claim_id: ClaimId, kernels: Iterable[Kernel]) -> tuple[KernelView, ...]:
        """A claim's kernels, each with what is known of it now."""
        seen, now_s = self._seen.get(claim_id, {}), self._clock.monotonic()
        return tuple(_view(kernel, _of(kernel, seen), now_s) for kernel in kernels)

    def words(self, claim_id: ClaimId, kernels: Iterable[Kernel]) -> tuple[KernelWord, ...]:
        """What is known now of each of a claim's kernels, by the clock that nobody sets."""
        seen, now_s = self._seen.get(claim_id, {}), self._clock.monotonic()
        return tuple(_word(_of(kernel, seen), now_s) for kernel in kernels)

    def _now_seen(self, kernel: Kernel, activity: KernelActivity) -> _Seen:
        now, quiet_s = self._clock.now(), activity.quiet_for_s
        is_unsaid = quiet_s is None or activity.state in _WITHOUT_QUIET
        return _Seen(
            of=kernel,
            state=activity.state,
            quiet_since=None if is_unsaid else now - timedelta(seconds=quiet_s or 0.0),
            quiet_s=None if is_unsaid else quiet_s,
            at=now,
            at_s=self._clock.monotonic(),
        )


def _is_dead(seen: _Seen | None) -> bool:
    return seen is not None and seen.state is KernelState.DEAD


def _of(kernel: Kernel, seen: Mapping[KernelId, _Seen]) -> _Seen | None:
    # Another process under the same id is not the one of whom it was told.
    found = seen.get(kernel.id)
    return found if found is not None and found.of == kernel else None


def _word(told: _Seen | None, now_s: float) -> KernelWord:
    if told is None:
        return KernelWord(state=KernelState.UNKNOWN)
    ago_s = now_s - told.at_s
    if ago_s > HOLDS_FOR_S and not _is_dead(told):
        return KernelWord(state=KernelState.UNKNOWN, was_heard=True)
    quiet_for_s = None if told.quiet_s is None else told.quiet_s + ago_s
    return KernelWord(state=told.state, quiet_for_s=quiet_for_s, was_heard=True)


def _unheard(kernel: Kernel) -> KernelState:
    """What a kernel does of which no server says anything."""
    return KernelState.UNKNOWN if kernel.gone_since is None else KernelState.DEAD


def _view(kernel: Kernel, told: _Seen | None, now_s: float) -> KernelView:
    fresh = told if _is_dead(told) or (told and now_s - told.at_s <= FRESH_FOR_S) else None
    return KernelView(
        id=kernel.id,
        name=kernel.name,
        host=kernel.host,
        boot_id=kernel.boot_id,
        pid=kernel.pid,
        started=kernel.started,
        attached_at=kernel.attached_at,
        state=fresh.state if fresh else _unheard(kernel),
        quiet_since=fresh.quiet_since if fresh else None,
        reported_at=told.at if told else None,
    )
