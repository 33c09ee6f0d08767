"""What all of this extension's handlers share: who may, which pool, and how an error is told.

`app` hands each of them the `ServerPool`. Everybody who may use this Jupyter server may use its
user's pool, for they can run code as that user anyway; an Authorizer that knows the resource
"gpupool" can say otherwise.
"""

from typing import Any

from jupyter_server.base.handlers import APIHandler, JupyterHandler

from jupyter_gpupool.pool.errors import PoolError

from .problems import MEDIA, told
from .server_pool import ServerPool

AUTH_RESOURCE = "gpupool"
ROOT = "gpupool"
API = f"{ROOT}/api/v1"
"""The same as the manager's own; not imported, for that would load pydantic with the server."""


class OurHandler(JupyterHandler):
    """A handler of this extension: its PoolErrors are answers, and no faults to be logged."""

    auth_resource = AUTH_RESOURCE

    def log_exception(self, *exc_info: Any) -> None:
        """Log what nobody foresaw."""
        if not isinstance(exc_info[1], PoolError):
            super().log_exception(*exc_info)


class PoolHandler(OurHandler):
    """A route of the pool: its errors are problems, as the manager's are."""

    def initialize(self, pool: ServerPool) -> None:
        """Take what the route table holds for us."""
        self.pool = pool

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Tell a PoolError as a problem, and anything else as Jupyter does."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if not isinstance(error, PoolError):
            super().write_error(status_code, **kwargs)
            return
        status, problem = told(error, self.request.path)
        self.set_status(status)
        self.set_header("Content-Type", MEDIA)
        # Past APIHandler's own, which would call it plain JSON.
        JupyterHandler.finish(self, problem)


class ApiHandler(PoolHandler, APIHandler):
    """One that answers with JSON, to pages and scripts alike."""

    @property
    def _track_activity(self) -> bool:  # type: ignore[override]  # the base's is a plain attribute
        # What only looks may be a poll, which must not keep the Jupyter server from being culled.
        return self.request.method != "GET"
