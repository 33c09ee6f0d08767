"""Results go from one process of a claim to another on the same host through a Unix socket.

Part of `taking`. Encrypted and decrypted, a gibibyte keeps two event loops busy for a second while
somebody waits for the device; here the kernel copies it, and threads wait for that. Whoever takes
listens in its own scratch folder, which lies in the claim's folder that its user alone may enter,
and names over TLS the word that whoever gives has to say first. Where that does not reach, as on
another host, nothing has happened, and results come over TLS.
"""

import asyncio
import contextlib
import hmac
import secrets
import socket
import struct
from collections.abc import Collection, Mapping, MutableMapping
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol, cast

from distributed.protocol.serialize import Serialized, serialize, to_serialize
from distributed.protocol.utils import host_array
from distributed.utils import ensure_memoryview

from jupyter_gpupool.protocol.socket_path import reachable

OPERATION = "gpupool_hand_over"
_WORD_BYTES = 32
_BUFFER_BYTES = 256 * 1024
"""Frames smaller than this share a call of the kernel."""
_NUMBER = struct.Struct("!Q")

_serialized: Any = Serialized
_to_serialize: Any = to_serialize
"""distributed's have no types."""


class OnHost(Protocol):
    """What of distributed's Worker is needed here."""

    rpc: Any
    local_directory: str


async def receive(
    taker: OnHost, source: str, keys: Collection[Any]
) -> dict[Any, Serialized] | None:
    """Have the process at `source` hand these results over. What it does not have is left out.

    Returns:
        None if it cannot reach this process in this way.

    Raises:
        OSError: If it ended meanwhile.
    """
    try:
        ear = _Ear(Path(taker.local_directory))
    except OSError:
        return None  # a full disk, or its folder has gone
    hearing = asyncio.create_task(asyncio.to_thread(ear.hear))
    try:
        call = getattr(taker.rpc(source), OPERATION)
        answer = await call(path=ear.path, word=ear.word, keys=list(keys))
        if not isinstance(answer, Mapping) or "headers" not in answer:
            return None
        frames = iter(await hearing)
    finally:
        ear.close()
        await asyncio.gather(hearing, return_exceptions=True)
    return {
        key: _serialized(dict(header), [next(frames) for _ in range(count)])
        for key, (header, count) in answer["headers"]
    }


async def give(
    results: MutableMapping[Any, Any], path: str, word: bytes, keys: Collection[Any]
) -> dict[str, Any]:
    """Hand these results over to whoever listens at `path`.

    Returns:
        "headers": for each key its header and how many frames it has, in their order; without it
        nobody was reached.
    """
    # Fetched here, for the store belongs to this thread.
    found = {key: results[key] for key in keys if key in results}
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            with reachable(path) as short:
                connection.connect(short)
        except OSError:
            return {}
        giving = asyncio.create_task(asyncio.to_thread(_give, connection, word, found))
        try:
            return {"headers": await asyncio.shield(giving)}
        finally:
            if not giving.done():
                _hang_up(connection)
            await asyncio.gather(giving, return_exceptions=True)


class _Ear:
    """Waits for one parcel of frames."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / f"take-{secrets.token_hex(8)}")
        self.word = secrets.token_bytes(_WORD_BYTES)
        self._is_closed = False
        self._listening = _listening_at(self.path)
        self._connection: socket.socket | None = None

    def hear(self) -> list[memoryview]:
        """The frames. May take long, and belongs into a thread.

        Raises:
            OSError: If whoever gives them has ended, or `close` was called.
        """
        with self._listening:
            while True:
                connection, _ = self._listening.accept()
                with connection, _reading(connection) as stream:
                    self._connection = connection
                    if self._is_closed:
                        raise ConnectionAbortedError
                    if hmac.compare_digest(stream.read(_WORD_BYTES), self.word):
                        lengths = [_number(stream) for _ in range(_number(stream))]
                        return [_read(stream, length) for length in lengths]

    def close(self) -> None:
        """Have `hear` return, if it still listens."""
        self._is_closed = True
        for each in (self._listening, self._connection):
            if each is not None:
                _hang_up(each)
        Path(self.path).unlink(missing_ok=True)


def _listening_at(path: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    try:
        with reachable(path) as short:
            listening.bind(short)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


def _give(
    connection: socket.socket, word: bytes, results: Mapping[Any, Any]
) -> list[tuple[Any, tuple[Any, int]]]:
    packed = {key: _packed(result) for key, result in results.items()}
    frames = [frame for _, some in packed.values() for frame in some]
    with connection.makefile("wb", _BUFFER_BYTES) as stream:
        stream.write(word + _NUMBER.pack(len(frames)))
        stream.writelines(_NUMBER.pack(frame.nbytes) for frame in frames)
        stream.writelines(frames)
    return [(key, (header, len(some))) for key, (header, some) in packed.items()]


def _packed(result: Any) -> tuple[dict[str, Any], list[memoryview]]:
    header, frames = serialize(_to_serialize(result))
    return header, [ensure_memoryview(frame) for frame in frames]


def _reading(connection: socket.socket) -> BufferedReader:
    return cast("BufferedReader", connection.makefile("rb", _BUFFER_BYTES))


def _number(stream: BufferedReader) -> int:
    number: int = _NUMBER.unpack(_read(stream, _NUMBER.size))[0]
    return number


def _read(stream: BufferedReader, nbytes: int) -> memoryview:
    frame = host_array(nbytes)
    if stream.readinto(frame) < nbytes:
        raise ConnectionResetError
    return frame


def _hang_up(connection: socket.socket) -> None:
    """Wake whoever waits in it; they close it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
