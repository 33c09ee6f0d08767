"""Tells the pool what the kernels of its claims do: at a change, and each half minute.

Called by `app`. It asks only a pool that is there: it never starts one, and while no kernel of this
server is attached to a claim it says nothing by itself, so that an embedded pool nobody uses ends.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.errors import PoolError

from .kernels import KernelWatch, Seen
from .server_pool import Connected, ServerPool

if TYPE_CHECKING:
    from jupyter_gpupool.protocol.using import KernelActivity

_APART_S = 1.0
_EVERY_S = 30.0
_MOST = 1000


class Reporter:
    """Sends what a `KernelWatch` sees."""

    def __init__(self, pool: ServerPool) -> None:
        self._pool = pool
        self._changed: set[str] = set()
        self._wake = asyncio.Event()
        self._attached: frozenset[str] = frozenset()

    def changed(self, kernel_id: str) -> None:
        """Have this kernel reported soon."""
        self._changed.add(kernel_id)
        self._wake.set()

    async def run(self, watch: KernelWatch) -> None:
        """Report until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _EVERY_S)
            self._wake.clear()
            if self._changed or self._attached:
                await self.report(watch)
                await asyncio.sleep(_APART_S)

    async def last(self, watch: KernelWatch) -> None:
        """Report a last time, if any kernel is attached."""
        if self._attached:
            await self.report(watch)

    async def report(self, watch: KernelWatch) -> None:
        """Report once; of what the pool could not be told, it is told the next time."""
        changed, self._changed = self._changed, set()
        try:
            connected = await self._pool.known()
            if connected is not None:
                await self._tell(connected, watch)
        except PoolError:
            # Not logged: whoever uses the pool meets the same error, with its hint.
            self._changed |= changed
            return
        for kernel_id in changed:
            watch.forget(kernel_id)

    async def _tell(self, connected: Connected, watch: KernelWatch) -> None:
        from jupyter_gpupool.protocol.using import ActivityBody  # noqa: PLC0415 - at first use

        views = await connected.client.claims(limit=_MOST)
        attached = frozenset(kernel.id for view in views for kernel in view.kernels)
        self._attached = attached & watch.seen.keys()
        if kernels := tuple(_activities(watch, self._attached)):
            await connected.client.report_activity(ActivityBody(kernels=kernels))


def _activities(watch: KernelWatch, attached: Iterable[str]) -> "Iterable[KernelActivity]":
    now = datetime.now(UTC)
    for kernel_id in sorted(attached)[:_MOST]:
        yield _activity(kernel_id, watch.seen[kernel_id], now)


def _activity(kernel_id: str, seen: Seen, now: datetime) -> "KernelActivity":
    from jupyter_gpupool.protocol.using import KernelActivity, KernelState  # noqa: PLC0415

    if seen.is_dead:
        return KernelActivity(kernel=kernel_id, state=KernelState.DEAD)
    if seen.work.is_busy:
        return KernelActivity(kernel=kernel_id, state=KernelState.BUSY, quiet_for_s=0)
    quiet_for_s = max(0.0, (now - seen.work.quiet_since).total_seconds())
    state = KernelState.IDLE if seen.has_spoken else KernelState.STARTING
    return KernelActivity(kernel=kernel_id, state=state, quiet_for_s=quiet_for_s)
