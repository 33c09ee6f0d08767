"""One pool of all your GPUs, claimed from the notebook.

    import jupyter_gpupool as gpupool

    with gpupool.claim(gpus=2) as cluster, cluster.get_client() as client:
        ...

Names are loaded at first use: importing this package costs next to nothing, and a Jupyter server
or the command line never pays for Dask.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

__version__ = "0.1.0"
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
_HOMES = {
    "ClaimCluster": "notebook.cluster",
    "StillWaiting": "notebook.opening",
    "attach": "notebook.claim",
    "claim": "notebook.claim",
    "claims": "notebook.claim",
    "status": "notebook.claim",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f".{_HOMES.get(name, 'pool.errors')}", __name__)
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
