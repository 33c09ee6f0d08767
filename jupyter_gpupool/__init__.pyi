from .notebook.asking import (
    claims,
    environments,
    explain,
    hibernate,
    keep_alive,
    logs,
    release,
    resume,
    scale,
    status,
)
from .notebook.claim import attach, claim
from .notebook.cluster import ClaimCluster
from .notebook.estimating import estimate
from .notebook.opening import StillWaiting
from .notebook.reclaiming import Reclaim
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
    "Reclaim",
    "StillWaiting",
    "Unavailable",
    "attach",
    "claim",
    "claims",
    "environments",
    "estimate",
    "explain",
    "hibernate",
    "keep_alive",
    "logs",
    "release",
    "resume",
    "scale",
    "status",
]

def load_ipython_extension(shell: object) -> None: ...
