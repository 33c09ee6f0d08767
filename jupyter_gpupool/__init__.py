"""One pool of all your GPUs, claimed from the notebook.

    import jupyter_gpupool as gpupool

    with gpupool.claim(gpus=2) as cluster, cluster.get_client() as client:
        ...

Names are loaded at first use: importing this package costs next to nothing, and a Jupyter server
or the command line never pays for Dask. `__init__.pyi` tells type checkers what they are.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
_HOMES = {
    "BadRequest": "pool.errors",
    "ClaimCluster": "notebook.cluster",
    "ClaimLost": "pool.errors",
    "Conflict": "pool.errors",
    "NotAllowed": "pool.errors",
    "NotAuthenticated": "pool.errors",
    "NotFound": "pool.errors",
    "PoolError": "pool.errors",
    "Reclaim": "notebook.reclaiming",
    "StillWaiting": "notebook.opening",
    "Unavailable": "pool.errors",
    "attach": "notebook.claim",
    "claim": "notebook.claim",
    "claims": "notebook.asking",
    "environments": "notebook.asking",
    "estimate": "notebook.estimating",
    "explain": "notebook.asking",
    "hibernate": "notebook.asking",
    "keep_alive": "notebook.asking",
    "logs": "notebook.asking",
    "release": "notebook.asking",
    "resume": "notebook.asking",
    "scale": "notebook.asking",
    "status": "notebook.asking",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f".{home}", __name__), name)
    except ModuleNotFoundError as error:
        raise import_module(".pool.lacking", __name__).lacking(f"gpupool.{name}", error) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """The Jupyter server extension, for a server that looks for it."""
    app = import_module(".server.app", __name__)
    return [{"module": __name__, "app": app.GpuPoolExtension}]


def load_ipython_extension(shell: Any) -> None:
    """`%gpupool` and `%%gpupool`, for IPython; its configuration names us, so nobody has to."""
    import_module(".notebook.magics.extension", __name__).load(shell)
