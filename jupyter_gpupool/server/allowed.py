"""Which of the manager's routes a browser may reach through the Jupyter server.

Called by `forward`. A list of what is allowed, for a route that a later manager adds may hand out
a secret: tokens and a claim's keys never get here, and kernels' activity is what this server saw
itself. Of the policy only what looks at it is passed on; the manager knows who is an admin.
"""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

_ID = r"[A-Za-z0-9_-]{1,200}"
"""No dot, slash or percent sign: what is matched is what the manager reads."""
_CLAIM = rf"/claims/{_ID}"
_ROUTES: Mapping[str, Sequence[str]] = {
    "GET": (
        "/status",
        "/environments",
        "/hosts",
        "/devices",
        "/events",
        "/reservations",
        "/claims",
        _CLAIM,
        rf"{_CLAIM}/explanation",
        rf"{_CLAIM}/logs",
        "/policy",
        "/policy/revisions",
        r"/policy/revisions/[0-9]{1,20}",
        "/policy/diff",
    ),
    "POST": (
        "/claims",
        "/estimates",
        rf"{_CLAIM}/scale",
        rf"{_CLAIM}/release",
        rf"{_CLAIM}/keep_alive",
        "/policy/check",
    ),
    "PUT": (rf"{_CLAIM}/kernels/{_ID}",),
    "DELETE": (rf"{_CLAIM}/kernels/{_ID}",),
}
_ALLOWED = {method: re.compile("|".join(paths)) for method, paths in _ROUTES.items()}
_OURS = frozenset({"token", "_xsrf", "start", "no_track_activity"})
"""What is said to the Jupyter server alone; its token opens all of the user's files."""


def is_allowed(method: str, path: str) -> bool:
    """Whether this request, its path as it was sent, may be passed on to the manager."""
    allowed = _ALLOWED.get(method)
    return allowed is not None and allowed.fullmatch(path) is not None


def passed_on(query: str) -> dict[str, str]:
    """The part of a query that is for the manager; of a name that comes twice, the last."""
    return {name: value for name, value in parse_qsl(query) if name not in _OURS}
