"""Two WebSockets joined: whatever one side says, the other hears, until either goes.

The upper half of `dashboards.DashboardPage`. Each side is read only as fast as the other takes it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jupyter_server.base.websocket import WebSocketMixin
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from .upstream import Upstream, Upstreams

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_UNSAYABLE = frozenset({1005, 1006, 1015})
"""Codes that stand for a connection that broke, and may not be sent."""
_GONE = 1001


class Relaying(WebSocketMixin, WebSocketHandler):
    """A WebSocket of the browser's that speaks for one of a dashboard's.

    Attributes:
        used: Called whenever the dashboard says something.
    """

    upstreams: Upstreams
    used: Callable[[], object]
    _far: "ClientConnection"

    async def open_socket(self, upstream: Upstream, path: str, query: str) -> None:
        """Connect to the dashboard first, so that a browser that is let in is heard."""
        self._far = await upstream.connect(path, query, self._offered())
        try:
            await super().get()
        finally:
            if self.ws_connection is None:
                await self._far.close()

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """What the dashboard chose."""
        chosen = self._far.subprotocol
        return chosen if chosen in subprotocols else None

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin to pass on what the dashboard says."""
        super().open(*args, **kwargs)
        self._hearing = self.upstreams.pool.spawn(self._hear())

    async def on_message(self, message: str | bytes) -> None:
        """Pass on what the browser says; it is not read on before that is done."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - loaded by now

        with contextlib.suppress(ConnectionClosed):  # `_hear` tells the browser
            await self._far.send(message)

    def on_close(self) -> None:
        """Leave the dashboard as well."""
        # In the loop's next turn: cancelled before its first step, it would close nothing.
        asyncio.get_running_loop().call_soon(self._hearing.cancel)
        super().on_close()

    async def _hear(self) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - as above

        try:
            # A scheduler that is killed says no good-bye.
            with contextlib.suppress(WebSocketClosedError, ConnectionClosed):
                async for message in self._far:
                    self.used()
                    await self.write_message(message, binary=isinstance(message, bytes))
        finally:
            code = self._far.close_code
            self.close(_GONE if code is None or code in _UNSAYABLE else code)
            await self._far.close()

    def _offered(self) -> list[str]:
        offered = self.request.headers.get("Sec-WebSocket-Protocol", "")
        return [name.strip() for name in offered.split(",") if name.strip()]
