"""The one task that acts without being asked, at the next deadline and not before.

Started beside the service; sleeps until something is due, the books change, or an hour is over.
"""

import asyncio
import contextlib
import gc
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.pool.ids import ClaimId

from .claims import expire_claim, start_too_slow
from .emptying import take_announced
from .forgetting import forget_old
from .hibernating import hibernate_too_slow
from .hosts import host_lost, host_silent
from .once import KEPT
from .scaling import retire_now, shrink_now
from .service import Service
from .taking_back import take_now
from .unit import UnitOfWork

_LOG = logging.getLogger(__name__)
_PRUNE_EVERY_S = 3600.0
_AGAIN_AFTER_S = 5.0
_AWAY_S = 2.0

Due = Callable[[UnitOfWork], None]
_K = TypeVar("_K")


class Timer:
    """Runs what is due on a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._task: asyncio.Task[None] | None = None
        self._prune_at_s = service.clock.monotonic() + 60.0

    def start(self) -> None:
        """Begin to watch."""
        self._task = asyncio.create_task(self._watch(), name="gpupool-timer")

    async def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def run_due(self) -> None:
        """Do everything that is due now; what fails is due again a little later."""
        now_s = self._service.clock.monotonic()
        await self._silence(now_s)
        for claim_id in _take_due(self._service.deadlines.idle, now_s):
            self._service.look_at(claim_id)
        for due in list(self._due(now_s)):
            await self._try(due)
        if now_s >= self._prune_at_s:
            self._prune_at_s = now_s + _PRUNE_EVERY_S
            await self._prune()

    async def failed(self) -> None:
        """Wait until it stops by itself, which is for ever unless there is a defect."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def _watch(self) -> None:
        monotonic = self._service.clock.monotonic
        while True:
            due_s = min(self._service.deadlines.earliest() or self._prune_at_s, self._prune_at_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due_s - monotonic())):
                    await self._service.batched.wait()
            self._service.batched.clear()
            if monotonic() - due_s > _AWAY_S:
                self._service.deadlines.postpone_losses(monotonic())
            if monotonic() >= due_s:
                await self.run_due()

    async def _silence(self, now_s: float) -> None:
        links, gone = self._service.links, self._service.deadlines.gone
        for host_id, again_s in _take_due(gone, now_s).items():
            # Asked right before the command is queued: a newer link's first word comes after it.
            is_told = links.is_open(host_id) or await self._try(
                partial(host_silent, host_id=host_id)
            )
            if is_told and gone.get(host_id) == again_s:
                del gone[host_id]

    async def _try(self, due: Due) -> bool:
        try:
            await self._service.execute(due)
        except PoolError as error:
            _LOG.warning("Something due could not be done yet: %s", error)
        except Exception:  # noqa: BLE001 - one defect must not stop everything else that is due
            _LOG.exception("Something due failed in a way nobody foresaw")
        else:
            return True
        return False

    def _due(self, now_s: float) -> Iterator[Due]:
        deadlines = self._service.deadlines
        for claim_id, start in _take_due(deadlines.start, now_s):
            yield partial(start_too_slow, claim_id=claim_id, start=start)
        for host_id in _take_due(deadlines.lost, now_s):
            yield partial(host_lost, host_id=host_id)
        for kind, act in (
            (deadlines.expiry, expire_claim),
            (deadlines.shrink, shrink_now),
            (deadlines.retire, retire_now),
            (deadlines.hibernate, hibernate_too_slow),
            (deadlines.taken, take_now),
        ):
            for claim_id in _take_due(kind, now_s):
                yield partial(act, claim_id=claim_id)
        for key in _take_due(deadlines.announced, now_s):
            yield partial(take_announced, key=key)
        if _take_due(deadlines.windows, now_s) or _take_due(deadlines.look_again, now_s):
            yield _look_again
        for claim_id in _take_due(deadlines.retry, now_s):
            yield partial(_try_again, claim_id=claim_id)

    async def _prune(self) -> None:
        service = self._service
        now = service.clock.now()
        if not await self._try(forget_old):
            return
        try:
            settings = service.settings
            await service.store.sum_up(now)
            await service.store.prune(now - settings.retention, now - KEPT, now - settings.recorded)
        except PoolError as error:
            _LOG.warning("What is too old could not be deleted yet: %s", error)
        gc.collect()


def _take_due(kind: dict[_K, float], now_s: float) -> dict[_K, float]:
    # Should it fail, it comes again; should it work, the commit clears it.
    due = {key: now_s + _AGAIN_AFTER_S for key, time_s in kind.items() if time_s <= now_s}
    kind.update(due)
    return due


def _look_again(unit: UnitOfWork) -> None:
    unit.replan = True


def _try_again(unit: UnitOfWork, claim_id: ClaimId) -> None:
    unit.failures[claim_id] = (unit.failures.get(claim_id) or ())[1:]
    unit.replan = True
