"""The Jupyter server extension: its settings, and what is wired to what.

Loaded with every Jupyter server, so nothing heavy is imported here, and nothing is started: the
first request or claim does that.
"""

import os
from typing import Any

from jupyter_server.extension.application import ExtensionApp
from traitlets import Unicode, default

from . import dashboards, event_stream, forward
from .kernels import KernelWatch
from .reporting import Reporter
from .server_pool import ServerPool
from .upstream import Upstreams

_URL, _TOKEN, _TOKEN_FILE, _CA = (
    "GPUPOOL_URL",
    "GPUPOOL_TOKEN",
    "GPUPOOL_TOKEN_FILE",
    "GPUPOOL_CA",
)
"""As `client.discovery` reads them; importing it would load pydantic with the server."""


class GpuPoolExtension(ExtensionApp):
    """The pool in a Jupyter server: forwards, shows dashboards, tells what kernels do."""

    name = "jupyter_gpupool"
    description = "The pool of GPUs in a Jupyter server."

    pool_url = Unicode(
        help="Address of the pool's manager, such as https://gpupool.example.org:8787; this server"
        " and the kernels it starts use it. Default: GPUPOOL_URL of the environment, else a private"
        " pool of this user on this machine, which needs jupyter-gpupool[all].",
    ).tag(config=True)
    token_file = Unicode(
        help="File with this user's token for pool_url; nobody else may be able to read it. It"
        " can be replaced while the server runs. Default: GPUPOOL_TOKEN_FILE or GPUPOOL_TOKEN of"
        " the environment.",
    ).tag(config=True)
    ca_file = Unicode(
        help="PEM file of the authority that signed the manager's certificate. Default: GPUPOOL_CA"
        " of the environment, else the system's authorities.",
    ).tag(config=True)

    @default("config_file_name")
    def _the_same_file_as_the_services(self) -> str:
        return "jupyter_gpupool_config"

    def initialize_settings(self) -> None:
        """Make what this server shall do, and have its kernels find the same pool."""
        _name_pool(self.pool_url, self.token_file, self.ca_file)
        self._pool = ServerPool()
        self._upstreams = Upstreams(self._pool)
        self._reporter = Reporter(self._pool)
        self._watch = KernelWatch(self.settings["kernel_manager"], self._reporter.changed)
        self._watch.begin()

    def initialize_handlers(self) -> None:
        """Add the routes."""
        pool: dict[str, Any] = {"pool": self._pool}
        for pattern, handler in (*event_stream.ROUTES, *forward.ROUTES):
            self.handlers.append((pattern, handler, pool))
        self.handlers.extend(dashboards.routes(self._upstreams))

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:  # noqa: ARG002 - theirs
        """Begin to report, once the server's loop runs."""
        self._pool.spawn(self._reporter.run(self._watch))

    async def stop_extension(self) -> None:
        """Say that the kernels end, and close everything; within two seconds, whatever happens."""
        await self._pool.end(self._last_words())

    async def _last_words(self) -> None:
        self._watch.end()
        if self._pool.is_known:
            await self._reporter.report(self._watch)
        await self._upstreams.close()


def _name_pool(url: str, token_file: str, ca_file: str) -> None:
    """Put what is set into the environment, where clients look for it, kernels' too."""
    os.environ.update({k: v for k, v in ((_URL, url), (_CA, ca_file)) if v})
    if token_file:
        os.environ[_TOKEN_FILE] = token_file
        # A file that is named here is meant; the variable would come first.
        os.environ.pop(_TOKEN, None)
