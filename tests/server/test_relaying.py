"""A browser's WebSocket joined with a dashboard's, whichever of them goes first and however."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, cast

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from jupyter_gpupool.server.relaying import Relaying
from jupyter_gpupool.server.server_pool import ServerPool
from jupyter_gpupool.server.upstream import Upstream, Upstreams

WITHIN_S = 30
Dashboard = Callable[[ServerConnection], Awaitable[None]]
Join = Callable[[Dashboard], Awaitable[str]]


@dataclass(frozen=True)
class Far:
    """The way to a dashboard that needs no TLS."""

    url: str

    async def connect(self, path: str, query: str, subprotocols: object) -> ClientConnection:
        return await connect(self.url, proxy=None)


class Near(Relaying):
    """The browser's side, without a Jupyter server around it."""

    log = logging.getLogger(__name__)
    leaves_at_once = False

    def initialize(self, far: Far) -> None:
        self.far, self.upstreams = far, Upstreams(ServerPool())
        self.used = lambda: None

    async def get(self, *_args: Any, **_kwargs: Any) -> None:
        await self.open_socket(cast("Upstream", self.far), "", "")

    def open(self, *args: Any, **kwargs: Any) -> None:
        super().open(*args, **kwargs)
        if self.leaves_at_once:
            self.on_close()


@pytest.fixture
async def join() -> AsyncIterator[Join]:
    """Put a relay before a dashboard and say where the browser finds it."""
    async with AsyncExitStack() as stack:

        async def start(dashboard: Dashboard) -> str:
            far = await stack.enter_async_context(serve(dashboard, "127.0.0.1", 0))
            port = next(iter(far.sockets)).getsockname()[1]
            application = Application(
                [("/", Near, {"far": Far(f"ws://127.0.0.1:{port}")})],
                allow_unauthenticated_access=True,
            )
            near, near_port = bind_unused_port()
            server = HTTPServer(application)
            server.add_socket(near)
            stack.callback(server.stop)
            return f"ws://127.0.0.1:{near_port}/"

        yield start


async def test_what_one_side_says_the_other_hears(join: Join) -> None:
    """Texts as texts, bytes as bytes."""

    async def echo(dashboard: ServerConnection) -> None:
        async for message in dashboard:
            await dashboard.send(message)

    async with connect(await join(echo), proxy=None) as browser:
        await browser.send("text")
        await browser.send(b"bytes")
        assert [await browser.recv(), await browser.recv()] == ["text", b"bytes"]


async def test_a_dashboard_that_is_killed_is_no_fault(
    join: Join, caplog: pytest.LogCaptureFixture
) -> None:
    """The browser is told that it is gone, and no log has a traceback."""

    async def die(dashboard: ServerConnection) -> None:
        dashboard.transport.abort()

    async with connect(await join(die), proxy=None) as browser:
        with pytest.raises(ConnectionClosed) as closed:
            await browser.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_browser_that_leaves_is_left(
    join: Join, monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    """Even before it was told anything: no dashboard keeps talking to nobody."""
    left = asyncio.Event()

    async def wait(dashboard: ServerConnection) -> None:
        await dashboard.wait_closed()
        left.set()

    monkeypatch.setattr(Near, "leaves_at_once", at_once)
    async with asyncio.timeout(WITHIN_S), connect(await join(wait), proxy=None):
        if at_once:
            await left.wait()
    async with asyncio.timeout(WITHIN_S):
        await left.wait()
