"""The way to a claim's dashboard: TLS that trusts the claim's own authority and nobody else.

Called by `dashboards`. The manager says where it is, to the claim's owner alone; a stranger's claim
is a 404 here because it is one there.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from jupyter_gpupool.pool.errors import Conflict, PoolError, Unavailable

from .server_pool import ServerPool

if TYPE_CHECKING:
    import ssl

    import httpx
    from websockets.asyncio.client import ClientConnection

    from jupyter_gpupool.protocol.api import ConnectionView

_PARTY = "scheduler"
"""Whom the certificate has to name: a worker of the claim has one of the same authority."""
_FRESH_S = 10.0
_KEPT_S = 600.0
_OPEN_WITHIN_S = 10.0
_ANSWER_WITHIN_S = 60.0
_MOST_BYTES = 20 * 1024 * 1024
"""Of one WebSocket message, as Bokeh has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """One claim's dashboard.

    Attributes:
        origin: Scheme, host and port.
        secret: The path below which it serves.
    """

    origin: str
    secret: str
    trust: "ssl.SSLContext"
    http: "httpx.AsyncClient"

    @contextlib.asynccontextmanager
    async def ask(
        self, method: str, path: str, query: str, headers: Mapping[str, str]
    ) -> AsyncIterator["httpx.Response"]:
        """The answer to a request, its body still to be read.

        Raises:
            Unavailable: If there is none.
        """
        import httpx  # noqa: PLC0415 - loaded at first use

        request = self.http.build_request(
            method,
            _url(self.origin, self.secret, path, query),
            headers=headers,
            extensions={"sni_hostname": _PARTY},
        )
        try:
            response = await self.http.send(request, stream=True)
            async with contextlib.aclosing(response):
                yield response
        except httpx.RequestError as error:  # of a body that breaks off, too
            raise _unreachable(error) from error

    async def connect(
        self, path: str, query: str, subprotocols: Sequence[str]
    ) -> "ClientConnection":
        """A WebSocket to it.

        Raises:
            Unavailable: If there is none.
        """
        from websockets.asyncio.client import connect  # noqa: PLC0415 - loaded at first use
        from websockets.exceptions import WebSocketException  # noqa: PLC0415
        from websockets.typing import Subprotocol  # noqa: PLC0415

        try:
            return await connect(
                _url(self.origin.replace("https", "wss", 1), self.secret, path, query),
                subprotocols=[Subprotocol(name) for name in subprotocols] or None,
                ssl=self.trust,
                server_hostname=_PARTY,
                proxy=None,
                open_timeout=_OPEN_WITHIN_S,
                max_size=_MOST_BYTES,
            )
        except (OSError, WebSocketException) as error:
            raise _unreachable(error) from error


class Upstreams:
    """The dashboards that were looked at, each asked for anew after some seconds."""

    def __init__(self, pool: ServerPool) -> None:
        self.pool = pool
        self._known: dict[str, tuple[float, Upstream]] = {}
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def of(self, claim_id: str) -> Upstream:
        """A claim's dashboard.

        Raises:
            PoolError: If there is no such claim, or it is another's, or has no dashboard now.
        """
        # One lock a claim: a dashboard that is asked for slowly holds up no other.
        async with self._asking.setdefault(claim_id, asyncio.Lock()):
            since, known = self._known.get(claim_id, (0.0, None))
            if known is None or time.monotonic() - since > _FRESH_S:
                known = await self._renew(claim_id)
            return known

    async def close(self) -> None:
        """Close all connections."""
        for claim_id in tuple(self._known):
            await self._forget(claim_id)

    async def _renew(self, claim_id: str) -> Upstream:
        _, old = self._known.get(claim_id, (0.0, None))
        try:
            connected = await self.pool.use(start=False)
            view = await connected.client.connection(claim_id)
            fresh = _upstream(view, old)
        except PoolError:
            await self._forget(claim_id)
            raise
        if fresh is not old:
            await self._forget(claim_id)
        self._known[claim_id] = (time.monotonic(), fresh)
        await self._forget_old()
        return fresh

    async def _forget_old(self) -> None:
        """Let go of dashboards that nobody looks at any more; whoever does asks anew."""
        limit = time.monotonic() - _KEPT_S
        for claim_id in [name for name, (since, _) in self._known.items() if since < limit]:
            await self._forget(claim_id)

    async def _forget(self, claim_id: str) -> None:
        _, old = self._known.pop(claim_id, (0.0, None))
        if old is not None:
            await old.http.aclose()


def _upstream(view: "ConnectionView", old: Upstream | None) -> Upstream:
    import ssl  # noqa: PLC0415 - loaded at first use

    import httpx  # noqa: PLC0415

    if view.dashboard_url is None:
        raise Conflict("The claim has no dashboard yet.", hint="Ask again once it runs.")
    parts = urlsplit(view.dashboard_url)
    origin, secret = f"{parts.scheme}://{parts.netloc}", parts.path.rpartition("/")[0]
    if old is not None and (old.origin, old.secret) == (origin, secret):
        return old
    trust = ssl.create_default_context(cadata=view.ca)
    http = httpx.AsyncClient(verify=trust, trust_env=False, timeout=_ANSWER_WITHIN_S)
    return Upstream(origin=origin, secret=secret, trust=trust, http=http)


def _url(origin: str, secret: str, path: str, query: str) -> str:
    return f"{origin}{secret}/{path}{'?' if query else ''}{query}"


def _unreachable(error: Exception) -> Unavailable:
    why = str(error) or type(error).__name__
    return Unavailable(
        f"The claim's dashboard does not answer ({why.rstrip('.')}).",
        hint="Look at the claim: its scheduler may be starting or gone.",
    )
