"""What becomes of a running claim: each change, and the end it did not ask for.

Started by `cluster` once its claim runs; lives on the background loop and knows no cluster.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from jupyter_gpupool.client.events import Notice, StreamState
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import NotFound, PoolError, Unavailable
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.protocol.api import ClaimView, EventView

_LOOK_WITHIN_S = 1.0
_OVER = (EventKind.CLAIM_ENDING, EventKind.CLAIM_ENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who is told. Called on the background loop: hand over, do not work there."""

    changed: Callable[[ClaimView], None]
    ended: Callable[[str], None]


class Following:
    """Follows one claim until it ends or nobody wants to know any more."""

    def __init__(self, pool: Pool, view: ClaimView, listener: Listener) -> None:
        self._pool = pool
        self._view = view
        self._listener = listener
        self._is_seen = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; from any thread."""
        self._pool.background.loop.call_soon_threadsafe(self._begin)

    def stop(self) -> None:
        """Say nothing more; from any thread."""
        self._pool.background.loop.call_soon_threadsafe(self._end)

    async def first_look(self) -> None:
        """Wait until the claim was seen once, or nobody tells; on the background loop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_WITHIN_S):
                await self._is_seen.wait()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._follow(), name=f"gpupool claim {self._view.id}")

    def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        # Without a right to ask (a revoked token) nothing is known, and nothing is said.
        with contextlib.suppress(PoolError):
            self._listener.ended(await self._end_of_it())

    async def _end_of_it(self) -> str:
        async with self._pool.events.watch(self._view.id, after=self._view.seq) as watch:
            reason = await self._load()
            while reason is None:
                reason = await self._hear(await watch.next())
            return reason

    async def _hear(self, notice: Notice | None) -> str | None:
        if isinstance(notice, EventView) and notice.kind in _OVER:
            return notice.reason
        if notice is StreamState.SILENT:
            # The claim runs on without its manager.
            return None
        return await self._load()

    async def _load(self) -> str | None:
        """The claim as it is now; the reason if it is over."""
        with contextlib.suppress(Unavailable):
            try:
                self._view = await self._pool.client.claim(self._view.id)
            except NotFound:
                return "the pool does not know it any more."
            if self._view.phase in (Phase.ENDING, Phase.ENDED):
                return self._view.reason
            self._listener.changed(self._view)
            self._is_seen.set()
        return None
