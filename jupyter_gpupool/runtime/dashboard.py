"""The scheduler's one HTTP server: TLS, a secret prefix, and nothing at all outside of it.

Called by `scheduler`. distributed's own server answers some routes without the prefix, among them a
sitemap and a redirect that tell the prefix; here the prefix is checked before any route is looked
at. The pages are built when the first of them is asked for: most claims' dashboards never are.
"""

import hmac
import importlib
import logging
from collections.abc import Sequence
from typing import Any

from distributed.http.routing import RoutingApplication
from distributed.http.utils import get_handlers
from tornado import httputil
from tornado.httpserver import HTTPServer
from tornado.web import ErrorHandler, RedirectHandler

from jupyter_gpupool.protocol.launch import Tls

from .credentials import server_context

_NOT_SERVED = {"distributed.http.proxy"}
"""Forwards to workers' HTTP servers; ours have none."""


class GuardedApplication(RoutingApplication):
    """Answers 404 to whoever does not know the prefix, whatever they ask for."""

    def __init__(self, scheduler: Any, prefix: str, routes: Sequence[str]) -> None:
        super().__init__([])  # type: ignore[no-untyped-call]  # distributed's has no types
        self._scheduler = scheduler
        self._prefix = prefix
        self._routes = [module for module in routes if module not in _NOT_SERVED]
        self._is_built = False

    def find_handler(self, request: httputil.HTTPServerRequest, **kwargs: Any) -> Any:
        """The handler of a request: the routes are looked at only inside the prefix."""
        first, _, rest = request.path.lstrip("/").partition("/")
        if not hmac.compare_digest(first.encode(), self._prefix.encode()):
            return self.get_handler_delegate(request, ErrorHandler, {"status_code": 404})
        if not rest:
            target = {"url": f"/{self._prefix}/status", "permanent": False}
            return self.get_handler_delegate(request, RedirectHandler, target)
        self._build_once()
        return super().find_handler(request, **kwargs)

    def _build_once(self) -> None:
        if self._is_built:
            return
        self._is_built = True
        scheduler, prefix = self._scheduler, f"/{self._prefix}"
        self.add_handlers(
            r".*", get_handlers(server=scheduler, modules=self._routes, prefix=prefix)
        )
        # A second to load, unless the zygote has done so already.
        connect: Any = importlib.import_module("distributed.dashboard.scheduler").connect
        connect(self, scheduler.http_server, scheduler, prefix=prefix)


def open_dashboard(
    scheduler: Any, *, listen: str, prefix: str, tls: Tls, routes: Sequence[str]
) -> int | None:
    """Serve a scheduler's pages on a free port of that address.

    Args:
        scheduler: Whose pages.
        listen: The address.
        prefix: The secret they all begin with.
        tls: The scheduler's credentials.
        routes: distributed's modules of pages.

    Returns:
        The port, or None without a prefix: then nothing listens.
    """
    clean = prefix.strip("/")
    application = GuardedApplication(scheduler, clean, routes)
    scheduler.http_application = application
    if not clean:
        return None
    # A line of the access log holds the path, and with it the prefix.
    logging.getLogger("tornado.access").disabled = True
    server: Any = HTTPServer(application, ssl_options=server_context(tls))
    server.listen(0, address=listen)
    port: int = next(iter(server._sockets.values())).getsockname()[1]  # noqa: SLF001 - as distributed does
    server.port, server.address = port, listen
    scheduler.http_server = server
    scheduler.services["dashboard"] = server
    return port
