"""Ends the Dask clients of a claim that is over: nothing hangs, lost results raise the reason.

Called by `cluster`, on the loop it shares with its clients. This file alone knows what a
distributed Client looks like inside.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

from distributed import Client
from distributed.client import DEFAULT_EXTENSIONS
from distributed.comm.core import connect

from jupyter_gpupool.pool.errors import PoolError

from .losing import EndsByItself, lost_soon, unless_lost

_CLOSE_WITHIN_S = 3.0
_GATHER_S = 0.002
"""How long messages to the scheduler are gathered, as it does itself towards its workers.

Dask's clients take 10 ms. The first thing a client sends subscribes to a topic, so the first task
of a claim would sit out all of that: a tenth of the time from `claim` to its result.
"""
_NO_QUESTIONS = frozenset({"address", "identity", "close_rpc", "status"})
"""What its client asks by itself, and what is not asked of the scheduler."""
_LOSES = frozenset({"pending", "finished", "lost"})
"""States of a result that goes with its claim; an error of its own it keeps."""
_ASKS_FOR_RESULTS = "update-graph"


class ClaimClient:
    """Part of every Dask client: one whose cluster may end waits for the reason.

    A claim's end shows as a connection that breaks, some moments before its reason is known. Dask
    cancels all results at once then, and a client about to connect raises whatever it ran into.
    """

    def __init__(self, client: Any) -> None:
        if isinstance(client.cluster, EndsByItself):
            self._client, self._cluster = client, client.cluster
            self._is_known = False
            client._reconnect = self._reconnect  # noqa: SLF001
            client._ensure_connected = self._connect  # noqa: SLF001

    async def _reconnect(self) -> None:
        """In place of a client's own, which takes all results for lost."""
        reason = asyncio.ensure_future(lost_soon(self._cluster))
        answers = asyncio.ensure_future(self._answers())
        await asyncio.wait((reason, answers), return_when=asyncio.FIRST_COMPLETED)
        if not (answers.done() and answers.result()) and await reason is not None:
            return
        reason.cancel()
        answers.cancel()
        await type(self._client)._reconnect(self._client)  # noqa: SLF001

    async def _answers(self) -> bool:
        """Whether only the connection broke: its scheduler is there, and nothing ends the claim."""
        client = self._client
        try:
            comm = await connect(client.scheduler.address, **client.connection_args)
        except OSError:
            return False
        comm.abort()
        return await self._cluster.goes_on()

    async def _connect(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - Dask's
        """In place of a client's own.

        Raises:
            ClaimLost: If the claim ends before its client has ever been connected.
            Unavailable: If its scheduler cannot be reached, and it goes on.
            OSError: If the connection broke before, and cannot be made again yet.
        """
        connecting = type(self._client)._ensure_connected(self._client, timeout)  # noqa: SLF001
        if self._is_known:
            await connecting
        else:
            await self._connect_first(connecting)
        if self._client.scheduler_comm is not None:
            self._client.scheduler_comm.interval = _GATHER_S

    async def _connect_first(self, connecting: Coroutine[Any, Any, None]) -> None:
        try:
            await unless_lost(self._cluster, connecting)
        except PoolError:
            await _end(self._client)
            raise
        self._is_known = True
        self._client.scheduler = SchedulerOfClaim(self._client.scheduler, self._cluster)


class SchedulerOfClaim:
    """The rpc object of a client's scheduler: what breaks off with its claim raises the reason."""

    def __init__(self, scheduler: Any, cluster: EndsByItself) -> None:
        self._scheduler = scheduler
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._scheduler, name)
        return found if name in _NO_QUESTIONS else partial(self._ask, found)

    async def _ask(self, question: Any, *args: Any, **named: Any) -> Any:
        try:
            return await question(*args, **named)
        except OSError:
            if (error := await lost_soon(self._cluster)) is not None:
                raise error from None
            raise


DEFAULT_EXTENSIONS["gpupool"] = ClaimClient
"""Dask's own place for what belongs to every client of a process."""


def fail_results(cluster: object, error: Exception) -> None:
    """Let every result of a cluster's clients raise `error`: in flight, to fetch, or asked for yet.

    A second time, once they are closed, for what appeared in between.
    """
    for client in _clients_of(cluster):
        # Before the look at what there is, so that none slips in after it.
        client._send_to_scheduler = partial(_send, client, error)  # noqa: SLF001
        for key, state in tuple(client.futures.items()):
            if state.status in _LOSES:
                state.set_error(error, None)
                # Closing cancels what it still knows, which would hide the reason.
                client.futures.pop(key, None)


def _send(client: Any, error: Exception, message: dict[str, Any]) -> None:
    """In place of a client's own: a closing client takes tasks and never settles them."""
    if message["op"] == _ASKS_FOR_RESULTS:
        raise error
    type(client)._send_to_scheduler(client, message)  # noqa: SLF001


async def end_clients(cluster: object) -> None:
    """Close every client of a cluster."""
    with _hushed():
        await asyncio.gather(*(_end(client) for client in _clients_of(cluster)))


def _clients_of(cluster: object) -> Sequence[Any]:
    known = tuple(Client._instances)  # noqa: SLF001 - there is no other list of them
    return [client for client in known if client.cluster is cluster]


async def _end(client: Any) -> None:
    if client.status in ("closed", "newly-created"):
        return
    with contextlib.suppress(TimeoutError, OSError):
        # A scheduler that was killed says no good-bye: do not wait for it.
        async with asyncio.timeout(_CLOSE_WITHIN_S):
            await client._close(fast=True)  # noqa: SLF001 - close() would wait for its own loop


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Keep a client that is cut off while it reconnects from logging that as an error."""
    logger = logging.getLogger("distributed.client")
    logger.addFilter(_nothing)
    try:
        yield
    finally:
        logger.removeFilter(_nothing)


def _nothing(_record: logging.LogRecord) -> bool:
    return False
