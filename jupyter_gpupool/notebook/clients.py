"""Ends the Dask clients of a claim that is over: nothing hangs, lost results raise the reason.

Called by `cluster`, on the loop it shares with its clients. This file alone knows what a
distributed Client looks like inside.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from distributed import Client
from distributed.client import DEFAULT_EXTENSIONS

_CLOSE_WITHIN_S = 3.0
_REASON_WITHIN_S = 5.0
"""How long after a connection broke the pool may take to say why."""
_LOSES = frozenset({"pending", "finished", "lost"})
"""States of a result that goes with its claim; an error of its own it keeps."""
_ASKS_FOR_RESULTS = "update-graph"


class EndsByItself:
    """A cluster that its pool may end.

    Attributes:
        is_over: Set when it has ended; whoever sets it ends the clients as well.
    """

    is_over: asyncio.Event


class ReasonFirst:
    """Part of every Dask client: one whose cluster may end waits for the reason.

    Dask cancels all results at once when the connection to the scheduler breaks. That is how a
    claim's end shows, some moments before its reason is known.
    """

    def __init__(self, client: Any) -> None:
        if isinstance(client.cluster, EndsByItself):
            client._reconnect = partial(_reconnect, client, client.cluster)  # noqa: SLF001


async def _reconnect(client: Any, cluster: EndsByItself) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REASON_WITHIN_S):
            await cluster.is_over.wait()
            return
    await type(client)._reconnect(client)  # noqa: SLF001


DEFAULT_EXTENSIONS["gpupool"] = ReasonFirst
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
