"""A worker fetches results from another one when its scheduler says so, and answers for each.

Part of `lease_worker` and of `holder`. distributed's own ways either answer for nothing
(acquire-replicas) or ask for all keys of a worker in one message (gather), and hang when one cannot
be read.
"""

import asyncio
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any, Protocol

from distributed.comm.addressing import get_address_host, parse_address
from distributed.core import send_recv
from distributed.protocol.serialize import Serialized, deserialize

from jupyter_gpupool.protocol.keeping import UnkeptReason

from . import handing_over
from .opaque import whole

OPERATION = "gpupool_take"
_BUSY_S = 0.02
_DETAIL_LENGTH = 300


class Fetcher(Protocol):
    """What of distributed's Worker it takes to fetch results."""

    rpc: Any
    local_directory: str
    deserialize: bool

    @property
    def address(self) -> str:
        """Where it listens."""


class Taker(Fetcher, Protocol):
    """What of distributed's Worker is needed here, and how what was fetched is put away."""

    @property
    def data(self) -> MutableMapping[Any, Any]:
        """Its results."""

    async def put_away(self, fetched: Mapping[Any, Any]) -> Mapping[Any, tuple[str, str]]:
        """Put these results into `data`.

        Returns:
            Of those that cannot be kept, the `UnkeptReason` and its detail. One that is left out of
            both comes some other way.
        """


async def take(taker: Taker, source: str, keys: Collection[Any]) -> dict[str, Any]:
    """Fetch these results from the worker at `source` and keep them.

    Returns:
        "kept": the keys that are here now; "refused": for others, why not (reason, detail). What
        is in neither was not to be had: its worker has gone, or does not have it any more.
    """
    try:
        fetched = await fetch(taker, source, keys)
    except OSError:
        return {"kept": [], "refused": {}}
    except Exception as error:  # noqa: BLE001 - what a user's class raises when it is made again
        if len(keys) == 1:
            return {"kept": [], "refused": {next(iter(keys)): _unreadable(error)}}
        return await _take_each(taker, source, keys)
    refused = await taker.put_away(fetched)
    kept = [key for key in fetched if key in taker.data]
    return {"kept": kept, "refused": dict(refused)}


async def fetch(taker: Fetcher, source: str, keys: Collection[Any]) -> dict[Any, Any]:
    """Fetch these results from the worker at `source`; what it does not have is left out.

    Raises:
        OSError: If it is not to be reached.
        Exception: Whatever is raised when one of them is made again.
    """
    if _are_on_one_host(taker.address, source):
        handed = await handing_over.receive(taker, source, keys)
        if handed is not None:
            return await asyncio.to_thread(_made, handed) if taker.deserialize else dict(handed)
    while True:
        answer = await _ask(taker, source, keys)
        if answer["status"] == "OK":
            fetched: dict[Any, Any] = answer["data"]
            return fetched
        await asyncio.sleep(_BUSY_S)


def _are_on_one_host(one: str, other: str) -> bool:
    """Whether it is worth a try: over UCX, a device's memory has better ways."""
    is_tls = parse_address(one)[0] == parse_address(other)[0] == "tls"
    return is_tls and get_address_host(one) == get_address_host(other)


def _made(handed: Mapping[Any, Serialized]) -> dict[Any, Any]:
    """The results themselves; the user's classes run here."""
    read: Any = deserialize
    return {key: read(*whole(each.header, each.frames)) for key, each in handed.items()}


async def _ask(taker: Fetcher, source: str, keys: Collection[Any]) -> dict[str, Any]:
    """As distributed's `get_data_from_worker`, but for a connection on which reading failed.

    That one is in the middle of a conversation: used again, both sides would wait for each other.
    """
    comm = await taker.rpc.connect(source)
    try:
        options: dict[str, Any] = {"op": "get_data", "keys": list(keys), "who": taker.address}
        answer: dict[str, Any] = await send_recv(comm, **options)
        if answer["status"] == "OK":
            await comm.write("OK")
    except BaseException:
        comm.abort()
        raise
    else:
        return answer
    finally:
        taker.rpc.reuse(source, comm)


async def _take_each(taker: Taker, source: str, keys: Collection[Any]) -> dict[str, Any]:
    """One message a result, so that one that cannot be read holds up no other."""
    kept: list[Any] = []
    refused: dict[Any, tuple[str, str]] = {}
    for key in keys:
        answer = await take(taker, source, [key])
        kept += answer["kept"]
        refused |= answer["refused"]
    return {"kept": kept, "refused": refused}


def _unreadable(error: Exception) -> tuple[str, str]:
    return UnkeptReason.UNREADABLE.value, f"{type(error).__name__}: {error}"[:_DETAIL_LENGTH]
