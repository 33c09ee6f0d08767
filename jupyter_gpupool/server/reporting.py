"""Tells the pool what this server's kernels do: at a change, and each half minute.

Called by `app`. It tells of all of them, for the manager knows which use a claim and ignores the
others. It tells a pool that is there: it never starts one, and to be told keeps none from ending.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.errors import PoolError

from .kernels import KernelWatch, Seen
from .server_pool import ServerPool

if TYPE_CHECKING:
    from jupyter_gpupool.protocol.using import KernelActivity

_APART_S = 1.0
_EVERY_S = 30.0
_MOST = 1000


class Reporter:
    """Sends what a `KernelWatch` sees."""

    def __init__(self, pool: ServerPool) -> None:
        self._pool = pool
        self._wake = asyncio.Event()

    def changed(self) -> None:
        """Have the kernels reported soon."""
        self._wake.set()

    async def run(self, watch: KernelWatch) -> None:
        """Report until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_S):
                    await self._wake.wait()
            self._wake.clear()
            if watch.seen:
                await self.report(watch)
                await asyncio.sleep(_APART_S)

    async def report(self, watch: KernelWatch) -> None:
        """Report once; a pool that cannot be told now is told the next time."""
        seen = dict(watch.seen)
        # A PoolError is not logged: whoever uses the pool meets the same one, with its hint.
        with contextlib.suppress(PoolError):
            await self._tell(seen)
            for kernel_id, kernel in seen.items():
                if kernel.is_dead:
                    watch.forget(kernel_id)

    async def _tell(self, seen: Mapping[str, Seen]) -> None:
        connected = await self._pool.known()
        if connected is None:
            return
        from jupyter_gpupool.protocol.using import ActivityBody  # noqa: PLC0415 - at first use

        told = tuple(islice(_activities(seen, datetime.now(UTC)), _MOST))
        await connected.client.report_activity(ActivityBody(kernels=told))


def _activities(seen: Mapping[str, Seen], now: datetime) -> "Iterable[KernelActivity]":
    from jupyter_gpupool.protocol.using import KernelActivity, KernelState  # noqa: PLC0415

    for kernel_id, kernel in seen.items():
        quiet_for_s = max(0.0, (now - kernel.work.quiet_since).total_seconds())
        if kernel.is_dead:
            yield KernelActivity(kernel=kernel_id, state=KernelState.DEAD)
        elif kernel.work.is_busy:
            yield KernelActivity(kernel=kernel_id, state=KernelState.BUSY, quiet_for_s=0)
        else:
            state = KernelState.IDLE if kernel.process else KernelState.STARTING
            yield KernelActivity(kernel=kernel_id, state=state, quiet_for_s=quiet_for_s)
