"""Results pass between two processes of a host through a socket in the claim's own folder."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed.protocol.serialize import deserialize

from jupyter_gpupool.protocol.socket_path import reachable
from jupyter_gpupool.runtime.handing_over import give, receive
from jupyter_gpupool.runtime.opaque import error_in

Answer = Callable[..., Awaitable[Any]]
WITHIN_S = 30


class Unwritable:
    """Cannot be serialised."""

    def __reduce__(self):
        raise TypeError("not for sending")


VALUES = {
    "bytes": b"x" * 3_000_000,
    ("tuple", 1): np.arange(500_000),
    "f": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "strided": np.arange(1000)[::3],
    "empty": np.empty(0),
    "none": None,
    "": "",
    "list": [np.arange(n) for n in range(20)],
    "dict": {"a": np.arange(3000), "b": "text" * 1000},
    "table": pd.DataFrame({"a": range(2000), "b": [str(n) for n in range(2000)]}),
}


@dataclass
class Taker:
    """One who takes from a process that answers in this way."""

    local_directory: str
    answer: Answer
    asked: list[dict[str, Any]] = field(default_factory=list)

    def rpc(self, _source: str) -> "Taker":
        """The way to it."""
        return self

    async def gpupool_hand_over(self, **question: Any) -> Any:
        """What travels over TLS."""
        self.asked.append(question)
        return await self.answer(**question)


async def gives(path: str, word: bytes, keys: list[Any]) -> Any:
    """As a worker that has these values does."""
    return await give(dict(VALUES), path, word, keys)


@pytest.fixture
def folder(tmp_path):
    """A scratch folder with a long path, in which nothing may be left."""
    deep = tmp_path / ("deep" * 40)
    deep.mkdir()
    yield deep
    assert not list(deep.iterdir())


async def taken(folder: Path, answer: Answer, keys: list[Any]) -> Any:
    """What comes of asking for these keys."""
    async with asyncio.timeout(WITHIN_S):
        return await receive(Taker(str(folder), answer), "tls://there:1", keys)


async def test_results_of_all_kinds_arrive_as_they_were(folder):
    """However deep the folder lies; what is not there any more is left out."""
    found = await taken(folder, gives, [*VALUES, "gone"])
    assert found.keys() == VALUES.keys()
    for key, value in VALUES.items():
        back = deserialize(found[key].header, found[key].frames)
        assert (type(back), repr(back)) == (type(value), repr(value))


async def test_array_that_came_can_be_written_to(folder):
    """As one that came over TLS can."""
    found = (await taken(folder, gives, ["f"]))["f"]
    array = deserialize(found.header, found.frames)
    array += 1
    assert array[0, 0] == 1


async def test_no_result_is_no_trouble(folder):
    """All of them were released meanwhile."""
    assert await taken(folder, gives, ["gone"]) == {}


async def test_what_cannot_be_written_brings_its_error(folder):
    """Beside the others, as over TLS."""

    async def gives_both(path, word, keys):
        return await give({"bad": Unwritable(), "good": 1}, path, word, keys)

    found = await taken(folder, gives_both, ["bad", "good"])
    assert "not for sending" in error_in(found["bad"].header, found["bad"].frames)
    assert deserialize(found["good"].header, found["good"].frames) == 1


async def test_who_cannot_reach_the_folder_says_so(folder):
    """It is on another host, for all that its address says."""

    async def gives_elsewhere(path, word, keys):
        return await give(dict(VALUES), f"/nix{path}", word, keys)

    assert await taken(folder, gives_elsewhere, ["bytes"]) is None


async def test_taker_without_a_folder_takes_nothing_this_way(tmp_path):
    """Its disk is full, or somebody tidied up: TLS needs neither."""
    assert await taken(tmp_path / "gone", gives, ["bytes"]) is None


async def test_whoever_says_another_word_is_not_heard(folder):
    """Nor is one that says nothing and goes; then the right one comes."""

    async def is_preceded(path, word, keys):
        for said in (b"", b"w" * 32, b"w" * 5000):
            with socket.socket(socket.AF_UNIX) as stranger:
                _reach(stranger, path)
                stranger.sendall(said)
        return await gives(path, word, keys)

    found = await taken(folder, is_preceded, ["bytes"])
    assert b"".join(found["bytes"].frames) == VALUES["bytes"]


async def test_giver_that_dies_half_way_is_an_error(folder):
    """Of the network's kind, so that it is tried again."""

    async def dies(path, word, keys):
        with socket.socket(socket.AF_UNIX) as giver:
            _reach(giver, path)
            giver.sendall(word + (1).to_bytes(8) + (1000).to_bytes(8) + b"half")
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await taken(folder, dies, ["bytes"])


async def test_who_stops_waiting_leaves_no_thread(folder):
    """The claim woke up while its holder waited for a worker that is stopped."""
    before = threading.active_count()
    asked = asyncio.Event()

    async def never(**_):
        asked.set()
        await asyncio.Event().wait()

    waiting = asyncio.create_task(taken(folder, never, ["bytes"]))
    await asked.wait()
    waiting.cancel()
    await asyncio.wait([waiting], timeout=WITHIN_S)
    assert waiting.cancelled()
    # The executor keeps its threads, but none of them waits.
    async with asyncio.timeout(WITHIN_S):
        await asyncio.get_running_loop().shutdown_default_executor()
    assert threading.active_count() <= before


async def test_giver_stops_when_its_taker_is_gone(folder):
    """Its thread would keep the frames for ever."""
    listening = socket.socket(socket.AF_UNIX)
    path = folder / "ear"
    with reachable(str(path)) as short:
        listening.bind(short)
    listening.listen()
    giving = asyncio.create_task(give(dict(VALUES), str(path), b"w" * 32, ["bytes"]))
    connection, _ = await asyncio.to_thread(listening.accept)
    connection.close()
    listening.close()
    path.unlink()
    with pytest.raises(ConnectionError):
        async with asyncio.timeout(WITHIN_S):
            await giving


def _reach(connection: socket.socket, path: str) -> None:
    with reachable(path) as short:
        connection.connect(short)
