"""The pool this process uses: found or started, and then kept, with its one connection.

Called by `notebook` and `cli`. Everything of a `Pool` but its making lives on the background loop.
"""

import asyncio
import os
import reprlib
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from jupyter_gpupool.pool.errors import BadRequest

from . import discovery, embedded
from .address import PoolAddress, Source
from .background import Background, background

if TYPE_CHECKING:
    from .events import EventStream
    from .pool_client import PoolClient


class Pool:
    """A manager as this process knows it: requests, and one event stream.

    Attributes:
        address: Where it is.
        background: The loop on which `client` and `events` live; callers go through it.
    """

    def __init__(self, address: PoolAddress, *, on: Background = background) -> None:
        # Imported here, in the caller's thread: 0.4 s that must stall no loop.
        from .events import EventStream  # noqa: PLC0415
        from .pool_client import PoolClient  # noqa: PLC0415

        self.address = address
        self.background = on
        self.client = PoolClient(address)
        self.events = EventStream(address)
        # A pool that another one has replaced lives for as long as a cluster of it does.
        closer = _closer(self.events, self.client)
        left = weakref.finalize(self, _close_soon, on, closer, os.getpid())
        left.atexit = False

    async def close(self) -> None:
        """Close its connections; on the background loop."""
        await _closer(self.events, self.client)()


def _closer(events: "EventStream", client: "PoolClient") -> Callable[[], Coroutine[Any, Any, None]]:
    async def close() -> None:
        await events.close()
        await client.close()

    return close


def _close_soon(on: Background, close: Callable[[], Coroutine[Any, Any, None]], pid: int) -> None:
    # In a forked child the connections are still its parent's.
    if os.getpid() == pid:
        asyncio.run_coroutine_threadsafe(close(), on.loop)


_lock = threading.Lock()
_current: Pool | None = None


def current_pool() -> Pool:
    """The pool that the environment, the runtime file or nobody names; in the last case ours.

    Asked for each claim: the user may have set GPUPOOL_URL since, or the embedded pool ended.

    Raises:
        PoolError: If there is none and none can be started.
    """
    global _current  # noqa: PLW0603 - one connection a process is the point
    with _lock:
        address = _find_or_start()
        if _current is None or _current.address != address:
            _current = Pool(address)
        return _current


def given_or_current(pool: Pool | None) -> Pool:
    """The pool that a user gave, else the current one.

    Raises:
        PoolError: BadRequest if that is no pool; else as `current_pool`.
    """
    if pool is None:
        return current_pool()
    if not isinstance(pool, Pool):
        raise BadRequest(
            f"pool={reprlib.repr(pool)} is no pool.",
            field="pool",
            hint="Leave it out, and set GPUPOOL_URL to choose one.",
        )
    return pool


def _find_or_start() -> PoolAddress:
    address = discovery.find()
    if address is None:
        return embedded.find_or_start()
    known = _current is not None and _current.address == address
    if known or address.source is Source.ENVIRONMENT:
        return address
    return embedded.find_or_start()


def _forget_after_fork() -> None:
    # A forked child has neither the thread nor a right to the connections.
    global _current, _lock
    _current, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
