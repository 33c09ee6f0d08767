"""Dask's dashboards through the Jupyter server: for the claim's owner, under any address of it.

A dashboard is HTML that its user's own code can write, on Jupyter's origin. It is therefore shown
in a sandbox without an origin: it can read nothing of Jupyter's, and what it asks for carries no
cookie. `DashboardDoor` is where people come in, logged in as everywhere; it sends them on to a path
with a ticket (`tickets`), below which `DashboardPage` serves the page and all its parts.
"""

import time
from typing import Any

from jupyter_server.auth.decorator import allow_unauthenticated, authorized
from jupyter_server.utils import url_path_join
from tornado.web import HTTPError, authenticated

from jupyter_gpupool.pool.errors import PoolError

from . import passing
from .handlers import ROOT, OurHandler
from .problems import told
from .relaying import Relaying
from .tickets import Tickets
from .upstream import Upstream, Upstreams

_DASHBOARDS = f"{ROOT}/dashboards"
_SANDBOX = "sandbox allow-scripts allow-popups allow-downloads"
"""Bokeh runs scripts, opens what a plot links to in a new tab, and saves plots as images."""
_FIRST_PAGE = "status"


class DashboardHandler(OurHandler):
    """What both have in common."""

    def initialize(self, upstreams: Upstreams, tickets: Tickets) -> None:
        """Take what the route table holds for us."""
        self.upstreams = upstreams
        self.tickets = tickets

    def shown(self, claim_id: str, *more: str) -> str:
        """The path below which the browser finds this claim's dashboard."""
        return url_path_join(self.base_url, _DASHBOARDS, claim_id, *more)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Tell a PoolError in one sentence, in Jupyter's own page of errors."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, PoolError):
            status, _ = told(error, "")
            shown = HTTPError(status, str(error).replace("%", "%%"))
            self.set_status(status)
            super().write_error(status, exc_info=(HTTPError, shown, None))
        else:
            super().write_error(status_code, **kwargs)


class DashboardDoor(DashboardHandler):
    """Lets those who are logged in come in."""

    @authenticated
    @authorized
    async def get(self, claim_id: str, path: str | None = None) -> None:
        """Send them on to the page, if the claim is theirs."""
        await self.upstreams.of(claim_id)
        ticket = self.tickets.issue(claim_id, time.monotonic())
        page = passing.path(path or _FIRST_PAGE)
        query = passing.query(self.request.query)
        self.redirect(f"{self.shown(claim_id, f'~{ticket}', page)}{'?' if query else ''}{query}")


class DashboardPage(Relaying, DashboardHandler):
    """Serves a page and its parts to whoever has its ticket."""

    @property
    def content_security_policy(self) -> str:
        """Jupyter's own, and the sandbox."""
        return f"{super().content_security_policy}; {_SANDBOX}"

    def check_origin(self, origin: str = "") -> bool:  # noqa: ARG002 - tornado's signature
        """Any: a sandboxed page says "null", and the ticket is what lets it in."""
        return True

    @allow_unauthenticated
    async def get(self, claim_id: str, ticket: str, path: str) -> None:
        """Serve a part, or open a WebSocket."""
        is_socket = self.request.headers.get("Upgrade", "").lower() == "websocket"
        path, query = passing.path(path), passing.query(self.request.query)
        if not self.tickets.admits(ticket, claim_id, time.monotonic()):
            self._turn_away(claim_id, path, is_socket=is_socket)
            return
        upstream = await self.upstreams.of(claim_id)
        if is_socket:
            self.used = lambda: self.tickets.admits(ticket, claim_id, time.monotonic())
            await self.open_socket(upstream, path, query)
        else:
            await self._serve(upstream, path, query, shown=self.shown(claim_id, f"~{ticket}"))

    def _turn_away(self, claim_id: str, path: str, *, is_socket: bool) -> None:
        if is_socket:
            raise HTTPError(403, "This dashboard was left alone too long: load its page again.")
        self.redirect(self.shown(claim_id, path))

    async def _serve(self, upstream: Upstream, path: str, query: str, *, shown: str) -> None:
        headers = passing.asked(self.request.headers)
        async with upstream.ask("GET", path, query, headers) as response:
            self.set_status(response.status_code)
            for name, value in passing.answered(response.headers).items():
                self.set_header(name, value)
            self.set_header("Referrer-Policy", "no-referrer")
            self._lead_on(response.headers.get("Location"), path, upstream.secret, shown)
            if response.headers.get("Content-Type", "").startswith("text/html"):
                text = await response.aread()
                self.finish(passing.page(text, secret=upstream.secret, shown=shown))
                return
            async for chunk in response.aiter_raw():
                self.write(chunk)
                await self.flush()

    def _lead_on(self, target: str | None, asked: str, secret: str, shown: str) -> None:
        if target is None:
            return
        to = passing.location(target, asked=asked, secret=secret, shown=shown)
        if to is None:
            raise HTTPError(502, "The dashboard leads elsewhere.")
        self.set_header("Location", to)


def routes(upstreams: Upstreams) -> tuple[tuple[str, type[DashboardHandler], dict[str, Any]], ...]:
    """The routes, and what their handlers share."""
    shared = {"upstreams": upstreams, "tickets": Tickets()}
    claim = rf"{_DASHBOARDS}/([A-Za-z0-9_-]+)"
    return (
        (rf"{claim}/~([A-Za-z0-9_-]+)/(.*)", DashboardPage, shared),
        (rf"{claim}(?:/([^~].*))?", DashboardDoor, shared),
    )
