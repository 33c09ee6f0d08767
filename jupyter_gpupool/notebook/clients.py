"""Ends the Dask clients of a claim that is over, so that nothing of theirs hangs.

Called by `cluster`, on the loop it shares with its clients. This file alone knows what a
distributed Client looks like inside.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from distributed import Client

_CLOSE_WITHIN_S = 3.0


async def end_clients(cluster: object, error: Exception | None) -> None:
    """Close every client of a cluster; results it still waits for raise `error`."""
    known = tuple(Client._instances)  # noqa: SLF001 - there is no other list of them
    clients = [client for client in known if client.cluster is cluster]
    with _hushed():
        await asyncio.gather(*(_end(client, error) for client in clients))


async def _end(client: Any, error: Exception | None) -> None:
    if error is not None:
        _fail_pending(client, error)
    if client.status in ("closed", "newly-created"):
        return
    with contextlib.suppress(TimeoutError, OSError):
        # A scheduler that was killed says no good-bye: do not wait for it.
        async with asyncio.timeout(_CLOSE_WITHIN_S):
            await client._close(fast=True)  # noqa: SLF001 - close() would wait for its own loop


def _fail_pending(client: Any, error: Exception) -> None:
    for key, state in tuple(client.futures.items()):
        if state.status == "pending":
            state.set_error(error, None)
            # Closing cancels what it still knows, which would hide the reason.
            del client.futures[key]


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
