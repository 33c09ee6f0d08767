"""The HTTP application: every router, every error, one place.

Called by `serving.py`, and by tests.
"""

from typing import Any

from fastapi import FastAPI

from jupyter_gpupool import __version__
from jupyter_gpupool.protocol.api import API, Problem

from . import (
    agents,
    claims,
    demand,
    dry_run,
    environments,
    estimates,
    events,
    health,
    hibernating,
    hosts,
    policy,
    problems,
    reservations,
    tokens,
    usage,
    using,
)
from .limits import BodyLimit
from .parts import Parts


def make_application(parts: Parts) -> FastAPI:
    """The application that serves these parts."""
    app = FastAPI(
        title="jupyter_gpupool",
        version=__version__,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.parts = parts
    for room in (
        claims,
        using,
        hibernating,
        estimates,
        reservations,
        policy,
        demand,
        dry_run,
        usage,
        environments,
        hosts,
        events,
        tokens,
        agents,
    ):
        app.include_router(room.router, prefix=API)
    app.include_router(health.router)
    app.add_middleware(BodyLimit)
    problems.install(app)
    _describe(app)
    return app


def _describe(app: FastAPI) -> None:
    made = app.openapi

    def openapi() -> dict[str, Any]:
        schema = made()
        parts = schema.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign] # the framework's own way to extend it
