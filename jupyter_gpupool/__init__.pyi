from .notebook.claim import attach, claim, claims, status
from .notebook.cluster import ClaimCluster
from .notebook.opening import StillWaiting
from .pool.errors import (
    BadRequest,
    ClaimLost,
    Conflict,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    PoolError,
    Unavailable,
)

__version__: str
__all__ = [
    "BadRequest",
    "ClaimCluster",
    "ClaimLost",
    "Conflict",
    "NotAllowed",
    "NotAuthenticated",
    "NotFound",
    "PoolError",
    "StillWaiting",
    "Unavailable",
    "attach",
    "claim",
    "claims",
    "status",
]
