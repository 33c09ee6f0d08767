"""Errors of this server's own as the manager would tell them: RFC 9457 problems.

Called by `handlers`. What the manager itself answers is passed on and never gets here.
"""

import json
from collections.abc import Mapping

from jupyter_gpupool.pool.errors import (
    BadRequest,
    Conflict,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    PoolError,
    Unavailable,
)

MEDIA = "application/problem+json"
_TYPE = "urn:gpupool:problem:"
_STATUS: Mapping[type[PoolError], tuple[int, str]] = {
    BadRequest: (422, "Bad request"),
    NotAllowed: (403, "Not allowed"),
    NotFound: (404, "Not found"),
    Conflict: (409, "Conflict"),
    # It is the server whose token the manager refused: the browser's login is well.
    NotAuthenticated: (503, "Unavailable"),
    Unavailable: (503, "Unavailable"),
}


def told(error: PoolError, path: str) -> tuple[int, str]:
    """An error's status, and the problem that tells it."""
    known = (answer for kind, answer in _STATUS.items() if isinstance(error, kind))
    status, title = next(known, (500, "Pool error"))
    body = {
        "type": f"{_TYPE}{error.reference}",
        "title": title,
        "status": status,
        "detail": error.message,
        "hint": error.hint,
        "field": getattr(error, "field", ""),
        "instance": path,
    }
    return status, json.dumps(body)
