"""The pool as this Jupyter server knows it: found or started at first use, and then kept.

Called by every handler and by `kernels`. Lives on the server's own loop. What takes its time, which
is finding, starting and importing, happens in a thread that nobody waits for when the server ends.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_gpupool.pool.errors import PoolError, Unavailable

if TYPE_CHECKING:
    from jupyter_gpupool.client.address import PoolAddress
    from jupyter_gpupool.client.events import EventStream
    from jupyter_gpupool.client.pool_client import PoolClient

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")
_LAST_WITHIN_S = 1.0
_END_WITHIN_S = 0.4


@dataclass(frozen=True, slots=True)
class Connected:
    """A manager that was found: requests, and the one event stream of this server."""

    address: "PoolAddress"
    client: "PoolClient"
    events: "EventStream"

    async def close(self) -> None:
        """Close its connections."""
        await self.events.close()
        await self.client.close()


class ServerPool:
    """Where this server's pool is; at most one manager at a time."""

    def __init__(self) -> None:
        self._current: Connected | None = None
        self._finding = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_known(self) -> bool:
        """Whether anything of this server has met a pool."""
        return self._current is not None

    async def use(self, *, start: bool = True) -> Connected:
        """The pool, which is started if none is named and none runs.

        Asked for each request: the embedded pool may have ended since, or be another one.

        Args:
            start: False for what only looks: it shall start nothing.

        Raises:
            PoolError: If there is none and none can be started.
        """
        connected = await self._find(start=start)
        if connected is None:
            raise Unavailable(
                "Your private pool on this machine is not running.",
                hint="It starts with the first claim.",
            )
        return connected

    async def known(self) -> Connected | None:
        """The pool, if one is named or runs. Starts nothing.

        Raises:
            PoolError: If what is named cannot be used.
        """
        return await self._find(start=False)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something on the loop until it ends, or until the server does; nobody has to wait."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._has_ended)
        return task

    async def end(self, last: Coroutine[Any, Any, None]) -> None:
        """Do one last thing, end what was spawned, close the connections; within two seconds."""
        await _within(_LAST_WITHIN_S, self.spawn(last))
        for task in tuple(self._tasks):
            task.cancel()
        await _within(_END_WITHIN_S, *self._tasks)
        current, self._current = self._current, None
        if current is not None:
            await _within(_END_WITHIN_S, self.spawn(current.close()))

    def _has_ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        # A PoolError is not logged: whoever uses the pool meets the same one, with its hint.
        if not task.cancelled() and not isinstance(error := task.exception(), PoolError | None):
            _LOG.error("Something of the pool's extension has failed", exc_info=error)

    async def _find(self, *, start: bool) -> Connected | None:
        async with self._finding:
            before = self._current
            found = await _in_a_thread(lambda: _connected(before, start=start))
            if before is not None and found is not before:
                self.spawn(before.close())
            self._current = found
            return found


async def _within(seconds: float, *tasks: "asyncio.Task[None]") -> None:
    """Wait for these, but not longer, and for no result of theirs."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()


def _connected(current: Connected | None, *, start: bool) -> Connected | None:
    address = _address(current, start=start)
    if address is None or (current is not None and current.address == address):
        return current if address else None
    from jupyter_gpupool.client.events import EventStream  # noqa: PLC0415 - 0.4 s, at first use
    from jupyter_gpupool.client.pool_client import PoolClient  # noqa: PLC0415

    return Connected(address, PoolClient(address), EventStream(address))


def _address(current: Connected | None, *, start: bool) -> "PoolAddress | None":
    from jupyter_gpupool.client import discovery, embedded  # noqa: PLC0415 - as above
    from jupyter_gpupool.client.address import Source  # noqa: PLC0415

    address = discovery.find()
    is_known = current is not None and current.address == address
    if not start or is_known or (address and address.source is Source.ENVIRONMENT):
        return address
    return embedded.find_or_start()


async def _in_a_thread(work: Callable[[], _T]) -> _T:
    """The result of something that blocks, in a daemon thread: no executor waits for it at exit."""
    future: Future[_T] = Future()
    # From now on it cannot be cancelled: the thread will have somewhere to put its result.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001 - it is raised again where it is awaited
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="gpupool find").start()
    return await asyncio.wrap_future(future)
