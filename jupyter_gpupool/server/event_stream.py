"""The pool's events as a WebSocket to the browser: all of them share this server's one stream.

Says the same lines as the manager's own stream. While the manager does not answer, the socket is
closed with 1012: the browser comes again with `after` and misses nothing, and can ask any route of
`forward` what is wrong meanwhile. A WebSocket, for a request that never ends would spoil the
server's statistics of how long requests take.
"""

import re
from typing import Any

from jupyter_server.auth.decorator import authorized, ws_authenticated
from jupyter_server.base.websocket import WebSocketMixin
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from jupyter_gpupool.pool.errors import BadRequest, PoolError

from .handlers import API, PoolHandler
from .server_pool import Connected

COME_AGAIN, TOKEN_VOID = 1012, 4401
_POSITION = re.compile(r"[0-9]{1,18}")


class EventStreamHandler(WebSocketMixin, WebSocketHandler, PoolHandler):
    """Events since `after`, of one `claim` or of all, until the browser goes."""

    @ws_authenticated
    @authorized
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Find the pool, then open the socket."""
        self._after = self._wished_start()
        self._claim = self.get_query_argument("claim", None)
        self._connected = await self.pool.use(start=self.get_query_argument("start", "") != "false")
        await super().get(*args, **kwargs)

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin to tell."""
        super().open(*args, **kwargs)
        self._telling = self.pool.spawn(self._tell_all(self._connected))

    def on_message(self, message: str | bytes) -> None:
        """Ignore it: a browser has nothing to say here."""

    def on_close(self) -> None:
        """Stop telling."""
        self._telling.cancel()

    def _wished_start(self) -> int | None:
        wish = self.get_query_argument("after", "")
        if wish and not _POSITION.fullmatch(wish):
            raise BadRequest(f"after={wish[:40]!r} is no position in the events.", field="after")
        return int(wish) if wish else None

    async def _tell_all(self, connected: Connected) -> None:
        code = COME_AGAIN
        try:
            await self._tell(connected)
        except PoolError:
            code = TOKEN_VOID
        except WebSocketClosedError:
            pass
        finally:
            self.close(code)

    async def _tell(self, connected: Connected) -> None:
        from jupyter_gpupool.client.events import StreamState  # noqa: PLC0415 - loaded at first use
        from jupyter_gpupool.protocol.api import EventView, StreamGap  # noqa: PLC0415

        told = self._after or 0
        async with connected.events.watch(self._claim, after=self._after) as watch:
            while (notice := await watch.next()) is not StreamState.SILENT:
                if isinstance(notice, EventView):
                    told = notice.seq
                    line = notice.model_dump_json()
                else:
                    # What the stream may have missed is asked for anew; so says a gap.
                    line = StreamGap(oldest=told + 1).model_dump_json()
                # Awaited, so that a browser that reads slowly fills no memory of ours.
                await self.write_message(line)


ROUTES = ((rf"{API}/events/stream", EventStreamHandler),)
