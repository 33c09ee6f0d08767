"""One event stream for all who watch, which resumes where it broke."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.events import EventStream, StreamState, Watch
from jupyter_gpupool.pool.errors import NotAllowed
from jupyter_gpupool.protocol.api import EventView

WITHIN_S = 5.0


async def test_watch_hears_of_its_claim_alone(
    streaming: Callable[..., Any], event: Callable[..., str]
) -> None:
    """Others' events do not reach it."""

    async def talk(socket: ServerConnection) -> None:
        await socket.send(event(1, claim_id="c-2"))
        await socket.send(event(2, claim_id="c-1"))
        await socket.wait_closed()

    async with streaming(talk) as address:
        stream = EventStream(address)
        async with stream.watch("c-1", after=0) as watch:
            assert await _next_seq(watch) == 2
        await stream.close()


async def test_stream_authenticates_by_header(streaming: Callable[..., Any]) -> None:
    """The token is in no URL."""
    seen: list[str] = []

    async def talk(socket: ServerConnection) -> None:
        assert socket.request is not None
        seen.extend((socket.request.headers["Authorization"], socket.request.path))

    async with streaming(talk) as address:
        stream = EventStream(address)
        async with stream.watch(after=7) as watch:
            await watch.next(within_s=WITHIN_S)
        await stream.close()
    assert seen[:2] == ["Bearer gpt_secret", "/api/v1/events/stream?after=7"]


async def test_broken_stream_resumes_after_the_last_event(
    streaming: Callable[..., Any], event: Callable[..., str]
) -> None:
    """Nothing is missed and nothing is heard twice."""
    asked: list[str] = []

    async def talk(socket: ServerConnection) -> None:
        assert socket.request is not None
        asked.append(socket.request.path.partition("?")[2])
        await socket.send(event(4 + len(asked)))

    async with streaming(talk) as address:
        stream = EventStream(address)
        async with stream.watch("c-1", after=4) as watch:
            assert await _next_seq(watch) == 5
            assert await _next_seq(watch) == 6
        await stream.close()
    assert asked[:2] == ["after=4", "after=5"]


async def test_gap_tells_watchers_to_load_anew(streaming: Callable[..., Any]) -> None:
    """What is no longer kept cannot be replayed, so the state has to be asked for."""

    async def talk(socket: ServerConnection) -> None:
        await socket.send('{"gap": true, "oldest": 90}')
        await socket.wait_closed()

    async with streaming(talk) as address:
        stream = EventStream(address)
        async with stream.watch("c-1", after=1) as watch:
            assert await watch.next(within_s=WITHIN_S) is StreamState.LIVE
        await stream.close()


async def test_late_watch_hears_what_it_missed(
    streaming: Callable[..., Any], event: Callable[..., str]
) -> None:
    """A claim's first events may come before anybody watches it."""

    async def talk(socket: ServerConnection) -> None:
        await socket.send(event(1, claim_id="c-1"))
        await socket.send(event(2, claim_id="c-2"))
        await socket.wait_closed()

    async with streaming(talk) as address:
        stream = EventStream(address)
        async with stream.watch("c-2", after=0) as first:
            assert await _next_seq(first) == 2
            async with stream.watch("c-1", after=0) as late:
                assert await _next_seq(late) == 1
        await stream.close()


async def test_silent_manager_is_told_once() -> None:
    """A watcher learns that nobody answers, and goes on waiting."""
    stream = EventStream(PoolAddress(url="http://127.0.0.1:9", token="t"))
    async with stream.watch("c-1", after=0) as watch:
        assert await watch.next(within_s=WITHIN_S) is StreamState.SILENT
        assert await watch.next(within_s=0.5) is None
    await stream.close()


async def test_refused_token_ends_the_stream() -> None:
    """Every watcher gets the reason instead of waiting for ever."""

    async def refuse(connection: ServerConnection, _request: object) -> Any:
        return connection.respond(403, "no")

    from websockets.asyncio.server import serve  # noqa: PLC0415 - this test alone needs it

    async with serve(_nothing, "127.0.0.1", 0, process_request=refuse) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        stream = EventStream(PoolAddress(url=f"http://127.0.0.1:{port}", token="t"))
        async with stream.watch("c-1", after=0) as watch:
            with pytest.raises(NotAllowed):
                await watch.next(within_s=WITHIN_S)
        await stream.close()


async def test_manager_that_takes_and_closes_is_not_overrun(
    streaming: Callable[..., Any],
) -> None:
    """Each turn makes every watcher ask: the pauses grow."""
    began: list[float] = []

    async def talk(_socket: ServerConnection) -> None:
        began.append(asyncio.get_running_loop().time())

    async with streaming(talk) as address:
        stream = EventStream(address)
        async with stream.watch("c-1", after=0) as watch:
            while len(began) < 4:
                assert await watch.next(within_s=WITHIN_S) is StreamState.LIVE
        await stream.close()
    first, *_, last = (after - before for before, after in pairwise(began))
    assert 0.04 < first < last


async def test_stream_ends_after_its_last_watch(streaming: Callable[..., Any]) -> None:
    """A kernel that claimed once keeps no manager in use."""
    gone = asyncio.Event()

    async def talk(socket: ServerConnection) -> None:
        await socket.wait_closed()
        gone.set()

    async with streaming(talk) as address:
        stream = EventStream(address, linger_s=0.05)
        async with stream.watch("c-1", after=0) as watch:
            await watch.next(within_s=0.2)
            assert stream.is_running
        async with asyncio.timeout(WITHIN_S):
            await gone.wait()
        assert not stream.is_running


async def test_watch_that_follows_soon_finds_the_stream_running(
    streaming: Callable[..., Any], event: Callable[..., str]
) -> None:
    """The next claim needs no new connection; after a rest it gets one."""
    connections: list[int] = []

    async def talk(socket: ServerConnection) -> None:
        connections.append(1)
        await socket.send(event(1))
        await socket.wait_closed()

    async with streaming(talk) as address:
        stream = EventStream(address, linger_s=30)
        for _ in range(2):
            async with stream.watch("c-1", after=0) as watch:
                assert await _next_seq(watch) == 1
        assert len(connections) == 1
        await stream.close()
        async with stream.watch("c-1", after=0) as watch:
            assert await _next_seq(watch) == 1
        assert len(connections) == 2
        await stream.close()


async def _next_seq(watch: Watch) -> int:
    while not isinstance(notice := await watch.next(within_s=WITHIN_S), EventView):
        assert notice is not None, "no event came in time"
    return notice.seq


async def _nothing(_socket: ServerConnection) -> None:
    """Never reached."""
