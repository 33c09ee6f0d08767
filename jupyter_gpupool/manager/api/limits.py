"""A bound on what a request may bring, checked while it arrives, before anything reads it."""

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 1 << 20
_TOO_LARGE = 413


class BodyLimit:
    """Refuses a body beyond 1 MiB, announced or not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; only HTTP bodies are counted."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        arrived = 0

        async def counted() -> Message:
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            if arrived > MOST_BYTES:
                raise HTTPException(_TOO_LARGE)
            return message

        await self._app(scope, counted, send)
