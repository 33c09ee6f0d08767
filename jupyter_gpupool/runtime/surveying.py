"""A worker says what its results take when serialised, and which of them could not be kept.

Part of `lease_worker`; asked by `hibernation` before anything is moved, so that a user hears in
advance what would be lost. Arrays cost nothing here: their frames are views. What is pickled is
also read back, for there are objects that can be written and never be read again.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from distributed.protocol.serialize import deserialize, serialize

from jupyter_gpupool.protocol.keeping import UnkeptReason

from .opaque import total_bytes

OPERATION = "gpupool_survey"
_TOGETHER = 16
_DETAIL_LENGTH = 300


async def survey(results: Mapping[Any, Any], keys: Collection[Any]) -> dict[str, Any]:
    """Look at these results; those that are here no more are left out.

    Returns:
        "bytes": by key, what it takes; "unkept": for others, why they could not be kept.
    """
    found: dict[Any, int | tuple[str, str]] = {}
    wanted = list(keys)
    for start in range(0, len(wanted), _TOGETHER):
        # Fetched here, for the store belongs to this thread; then the loop is free for others.
        some = {key: results[key] for key in wanted[start : start + _TOGETHER] if key in results}
        found |= await asyncio.to_thread(_look_at, some)
    return {
        "bytes": {key: seen for key, seen in found.items() if isinstance(seen, int)},
        "unkept": {key: seen for key, seen in found.items() if not isinstance(seen, int)},
    }


def _look_at(results: Mapping[Any, Any]) -> dict[Any, int | tuple[str, str]]:
    return {key: _size_or_problem(result) for key, result in results.items()}


def _size_or_problem(result: Any) -> int | tuple[str, str]:
    try:
        header, frames = serialize(result, on_error="raise")
    except Exception as error:  # noqa: BLE001 - a user's class may raise anything
        return _problem(UnkeptReason.UNWRITABLE, error.__cause__ or error)
    try:
        if header.get("serializer") == "pickle":
            read: Any = deserialize
            read(header, frames)
    except Exception as error:  # noqa: BLE001 - as above
        return _problem(UnkeptReason.UNREADABLE, error)
    return total_bytes(frames)


def _problem(reason: UnkeptReason, error: BaseException) -> tuple[str, str]:
    return reason.value, f"{type(error).__name__}: {error}"[:_DETAIL_LENGTH]
