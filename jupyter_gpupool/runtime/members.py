"""Knows a scheduler's workers by name, tells of each change, and retires those it is told to.

Called by `scheduler`; a plugin of distributed's Scheduler. Retiring takes as long as moving results
takes, so each goes on by itself and never holds up another order.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

from jupyter_gpupool.protocol.keeping import HOLDER_NAME
from jupyter_gpupool.protocol.launch import Orders

from .retiring import Membership, names_to_retire

_TRY_AGAIN_S = 2.0
_MOST_RETIRED = 512

logger = logging.getLogger("distributed.scheduler")


class Members(SchedulerPlugin):
    """A scheduler's workers, and what becomes of them."""

    name = "gpupool-members"

    def __init__(self, scheduler: Any, changed: Callable[[Membership], None]) -> None:
        self._scheduler = scheduler
        self._changed = changed
        self._names: dict[str, str] = {}
        self._orders = Orders()
        self._retiring: dict[str, asyncio.Task[None]] = {}
        self._retired: dict[str, None] = {}

    @property
    def membership(self) -> Membership:
        """Everybody's name, as of now."""
        return Membership(
            workers=tuple(self._names.values()),
            retiring=tuple(self._retiring),
            retired=tuple(self._retired),
        )

    def add_worker(self, scheduler: Any, worker: str) -> None:
        """A worker has registered (distributed calls this)."""
        name = str(scheduler.workers[worker].name)
        if name == HOLDER_NAME:
            return
        self._names[worker] = name
        self._tell_and_obey()

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        """A worker is gone (distributed calls this)."""
        del scheduler
        self._names.pop(worker, None)
        self._tell_and_obey()

    def obey(self, orders: Orders) -> None:
        """Take on these orders in place of the earlier ones."""
        self._orders = orders
        self._tell_and_obey()

    async def dismiss(self, address: str) -> None:
        """Let a worker go whose results are elsewhere; the agent hears of it before it ends."""
        if (name := self._names.get(address)) is not None:
            self._note_retired(name)
            await self._dismiss(address)

    def _tell_and_obey(self) -> None:
        for name in names_to_retire(self._orders, self.membership, self._spare):
            self._retiring[name] = asyncio.create_task(self._retire(name))
        self._changed(self.membership)

    def _spare(self, count: int) -> list[str]:
        addresses = self._scheduler.workers_to_close(n=count)
        return [self._names[address] for address in addresses if address in self._names]

    async def _retire(self, name: str) -> None:
        try:
            while (address := self._address_of(name)) is not None:
                if await self._hand_over(address):
                    # Told before the worker closes, so that its end surprises nobody.
                    self._note_retired(name)
                    await self._dismiss(address)
                    return
                await asyncio.sleep(_TRY_AGAIN_S)
        except Exception:
            logger.exception("Retiring worker %s failed", name)
        finally:
            self._retiring.pop(name, None)
            self._changed(self.membership)

    async def _hand_over(self, address: str) -> bool:
        if not self._somebody_stays():
            # Its results wait with it for whoever comes, or for the wish to hibernate; only
            # whoever wants no worker at all wants nothing of them.
            has_results = bool(self._scheduler.workers[address].has_what)
            return self._orders.keep_workers == 0 or not has_results
        done = await self._scheduler.retire_workers(
            workers=[address], close_workers=False, remove=False
        )
        return address in done

    def _somebody_stays(self) -> bool:
        return any(name not in self._retiring for name in self._names.values())

    def _note_retired(self, name: str) -> None:
        self._retired[name] = None
        while len(self._retired) > _MOST_RETIRED:
            del self._retired[next(iter(self._retired))]
        self._changed(self.membership)

    async def _dismiss(self, address: str) -> None:
        await self._scheduler.remove_worker(
            address, expected=True, close=True, stimulus_id=f"gpupool-retire-{time.time()}"
        )

    def _address_of(self, name: str) -> str | None:
        return next((address for address, its in self._names.items() if its == name), None)
