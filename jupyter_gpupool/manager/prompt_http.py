"""HTTP connections on which a request has to arrive in time.

Used by `http_server`. Whoever connects and says nothing, or half of something, needs no token to
hold a file descriptor of the manager's; uvicorn itself would wait for ever.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ARRIVE_WITHIN_S = 30.0


class PromptHttp(HttpToolsProtocol):
    """uvicorn's own connection, closed when a request takes too long to arrive."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """A part of a request; the rest has to follow."""
        self._expect()
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Another request may begin in the piece that the last one ended in."""
        self._expect()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """It is all there: how long the answer takes is not the caller's doing."""
        self._calm_down()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """From here on another protocol has the connection, with limits of its own."""
        self._calm_down()
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._calm_down()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(ARRIVE_WITHIN_S, self._give_up)

    def _calm_down(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        self.transport.close()
