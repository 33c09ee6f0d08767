"""One claim, followed for all its cards: told by the pool's event stream, asking for nothing twice.

Made by `widget`. It follows from the first card on and stops with the last one, or with the claim.
Unlike `following`, which serves a cluster, it goes on until the claim's devices are free, and says
when the manager falls silent.
"""

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from jupyter_gpupool.client.events import StreamState
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import PoolError, Unavailable
from jupyter_gpupool.protocol.api import ClaimView, DeviceView

from .card_model import Snapshot

Listener = Callable[[Snapshot], None]
"""Called on the background loop: hand over, do not work there."""


class Feed:
    """What is known of a claim, for as long as somebody listens.

    Attributes:
        pool: Where the claim is.
        latest: The claim as last heard of.
    """

    def __init__(self, pool: Pool, view: ClaimView) -> None:
        self.pool = pool
        self.latest = Snapshot(view=view, devices={}, at=datetime.now(UTC))
        self._listeners: dict[object, Listener] = {}
        self._changing = threading.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def listeners(self) -> int:
        """How many are told."""
        return len(self._listeners)

    @property
    def is_running(self) -> bool:
        """Whether it follows the claim."""
        return self._task is not None and not self._task.done()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Be told of every change from now on, until the function returned is called."""
        key = object()
        with self._changing:
            self._listeners = {**self._listeners, key: listener}
        self._adjust_soon()

        def leave() -> None:
            with self._changing:
                self._listeners = {k: one for k, one in self._listeners.items() if k is not key}
            self._adjust_soon()

        return leave

    def heard(self, view: ClaimView) -> None:
        """The claim as an answer to somebody else shows it; on the background loop."""
        if view.seq >= self.latest.view.seq:
            self._tell(view, self.latest.devices)

    def _adjust_soon(self) -> None:
        # At the end of its process the loop may be gone, and with it all there is to stop.
        with contextlib.suppress(RuntimeError):
            self.pool.background.loop.call_soon_threadsafe(self._adjust)

    def _adjust(self) -> None:
        """Make it so that it follows if somebody listens to a claim that lives."""
        is_wanted = bool(self._listeners) and self.latest.view.phase is not Phase.ENDED
        if is_wanted and not self.is_running:
            name = f"gpupool card {self.latest.view.id}"
            self._task = asyncio.create_task(self._follow(), name=name)
        elif not is_wanted and self._task is not None:
            self._task.cancel()

    async def _follow(self) -> None:
        view = self.latest.view
        try:
            async with self.pool.events.watch(view.id, after=view.seq) as watch:
                await self._look()
                while self.latest.view.phase is not Phase.ENDED:
                    if await watch.next() is StreamState.SILENT:
                        self._fall_silent()
                    else:
                        await self._look()
        except PoolError:
            # A revoked token, or a claim long forgotten: nothing more will be heard of it.
            self._fall_silent()

    async def _look(self) -> None:
        try:
            view = await self.pool.client.claim(self.latest.view.id)
            self._tell(view, await self._devices_of(view))
        except Unavailable:
            self._fall_silent()

    async def _devices_of(self, view: ClaimView) -> Mapping[str, DeviceView]:
        """What is known of the claim's devices; asked for only when a new one has come."""
        known = self.latest.devices
        if all(lease.device in known for lease in view.leases):
            return known
        wanted = {lease.device for lease in view.leases}
        return {one.uuid: one for one in await self.pool.client.devices() if one.uuid in wanted}

    def _tell(self, view: ClaimView, devices: Mapping[str, DeviceView]) -> None:
        self._publish(Snapshot(view=view, devices=devices, at=datetime.now(UTC)))

    def _fall_silent(self) -> None:
        self._publish(replace(self.latest, is_live=False))

    def _publish(self, snapshot: Snapshot) -> None:
        self.latest = snapshot
        for listener in tuple(self._listeners.values()):
            listener(snapshot)


_feeds: "weakref.WeakValueDictionary[tuple[int, str], Feed]" = weakref.WeakValueDictionary()


def feed_of(pool: Pool, view: ClaimView) -> Feed:
    """The one feed of a claim in this process."""
    # A feed keeps its pool alive, so the pool's id stays its own for as long as the entry is there.
    return _feeds.setdefault((id(pool), view.id), Feed(pool, view))
