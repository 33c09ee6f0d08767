"""One event stream for all who watch, which resumes where it broke."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.events import EventStream, StreamState, Watch
from jupyter_gpupool.pool.errors import NotAllowed
from jupyter_gpupool.protocol.api import EventView

WITHIN_S = 5.0
Talk = Callable[[ServerConnection], Awaitable[None]]
Watching = Callable[..., AbstractAsyncContextManager[Watch]]


def saying(*lines: str) -> Talk:
    """A manager that says these lines on each connection and holds it."""

    async def talk(socket: ServerConnection) -> None:
        for line in lines:
            await socket.send(line)
        await socket.wait_closed()

    return talk


@pytest.fixture
def watching(streaming: Callable[..., Any]) -> Watching:
    """Watch a claim, or everything, on a stream of its own from a manager that talks so."""

    @asynccontextmanager
    async def run(
        talk: Talk, claim_id: str | None = "c-1", *, after: int = 0
    ) -> AsyncIterator[Watch]:
        async with streaming(talk) as address:
            stream = EventStream(address)
            async with stream.watch(claim_id, after=after) as watch:
                yield watch
            await stream.close()

    return run


async def test_watch_hears_of_its_claim_alone(
    watching: Watching, event: Callable[..., str]
) -> None:
    """Others' events do not reach it."""
    talk = saying(event(1, claim_id="c-2"), event(2, claim_id="c-1"))
    async with watching(talk) as watch:
        assert await _next_seq(watch) == 2


async def test_stream_authenticates_by_header(watching: Watching) -> None:
    """The token is in no URL."""
    seen: list[str] = []

    async def talk(socket: ServerConnection) -> None:
        assert socket.request is not None
        seen.extend((socket.request.headers["Authorization"], socket.request.path))

    async with watching(talk, None, after=7) as watch:
        await watch.next(within_s=WITHIN_S)
    assert seen[:2] == ["Bearer gpt_secret", "/api/v1/events/stream?after=7"]


async def test_broken_stream_resumes_after_the_last_event(
    watching: Watching, event: Callable[..., str]
) -> None:
    """Nothing is missed and nothing is heard twice."""
    asked: list[str] = []

    async def talk(socket: ServerConnection) -> None:
        assert socket.request is not None
        asked.append(socket.request.path.partition("?")[2])
        await socket.send(event(4 + len(asked)))

    async with watching(talk, after=4) as watch:
        assert await _next_seq(watch) == 5
        assert await _next_seq(watch) == 6
    assert asked[:2] == ["after=4", "after=5"]


async def test_gap_tells_watchers_to_load_anew(watching: Watching) -> None:
    """What is no longer kept cannot be replayed, so the state has to be asked for."""
    async with watching(saying('{"gap": true, "oldest": 90}'), after=1) as watch:
        assert await watch.next(within_s=WITHIN_S) is StreamState.LIVE


async def test_late_watch_hears_what_it_missed(
    streaming: Callable[..., Any], event: Callable[..., str]
) -> None:
    """A claim's first events may come before anybody watches it."""
    talk = saying(event(1, claim_id="c-1"), event(2, claim_id="c-2"))
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


async def test_refused_token_ends_the_stream(streaming: Callable[..., Any]) -> None:
    """Every watcher gets the reason instead of waiting for ever."""

    async def refuse(connection: ServerConnection, _request: object) -> Any:
        return connection.respond(403, "no")

    async with streaming(saying(), process_request=refuse) as address:
        stream = EventStream(address)
        async with stream.watch("c-1", after=0) as watch:
            with pytest.raises(NotAllowed):
                await watch.next(within_s=WITHIN_S)
        await stream.close()


async def test_manager_that_takes_and_closes_is_not_overrun(watching: Watching) -> None:
    """Each turn makes every watcher ask: the pauses grow."""
    began: list[float] = []

    async def talk(_socket: ServerConnection) -> None:
        began.append(asyncio.get_running_loop().time())

    async with watching(talk) as watch:
        while len(began) < 4:
            assert await watch.next(within_s=WITHIN_S) is StreamState.LIVE
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
