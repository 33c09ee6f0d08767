"""The manager's API under the Jupyter server's own address, with the pool's token added here.

So no browser ever holds that token. Who asks is told from Jupyter's login, with its protection
against forged requests; what may be asked is a list (`allowed`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jupyter_server.auth.decorator import authorized
from tornado.web import authenticated

from jupyter_gpupool.pool.errors import BadRequest, NotFound

from .allowed import is_allowed, passed_on
from .handlers import API, ApiHandler

if TYPE_CHECKING:
    from jupyter_gpupool.client.http import Reply

_KEY = "Idempotency-Key"
_MOST_BYTES = 1024 * 1024
"""Of a body, as the manager has it; it would be sent there again and again to be refused."""
_TOLD: Mapping[str, str] = {"content-type": "Content-Type", "retry-after": "Retry-After"}
"""The only headers of the manager's answers that mean anything to the browser."""


class ForwardHandler(ApiHandler):
    """Passes a request on to the manager, and its answer back."""

    @authenticated
    @authorized
    async def get(self, path: str) -> None:
        """Ask for something; with `start=false` nothing is started for it."""
        await self._forward(path)

    @authenticated
    @authorized
    async def post(self, path: str) -> None:
        """Make or change something."""
        await self._forward(path)

    @authenticated
    @authorized
    async def put(self, path: str) -> None:
        """Set something."""
        await self._forward(path)

    @authenticated
    @authorized
    async def delete(self, path: str) -> None:
        """Remove something."""
        await self._forward(path)

    async def _forward(self, path: str) -> None:
        method = self.request.method or ""
        if not is_allowed(method, path):
            raise NotFound("The Jupyter server does not pass that on to the pool's manager.")
        if len(self.request.body) > _MOST_BYTES:
            raise BadRequest("The request is too large.", hint="Send less than 1 MiB.")
        connected = await self.pool.use(start=self.get_query_argument("start", "") != "false")
        reply = await connected.client.relay(
            method,
            path,
            content=self.request.body or None,
            params=passed_on(self.request.query),
            key=self.request.headers.get(_KEY),
        )
        self._answer(reply)

    def _answer(self, reply: "Reply") -> None:
        self.set_status(reply.status)
        told = {name: reply.headers[key] for key, name in _TOLD.items() if key in reply.headers}
        for name, value in told.items():
            self.set_header(name, value)
        self.finish(reply.body or None, set_content_type=told.get("Content-Type", "text/plain"))


ROUTES = ((rf"{API}(/.*)", ForwardHandler),)
