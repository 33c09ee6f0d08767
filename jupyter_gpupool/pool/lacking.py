"""What is told to whoever uses something that this Python lacks a package for. Pure.

Called where our own modules are imported on demand: by the package itself and by the magics.
"""

from .errors import Unavailable

_OURS = "jupyter_gpupool"


def lacking(what: str, error: ModuleNotFoundError) -> Exception:
    """The error to raise instead; the same one if it is a module of ours that is missing.

    Args:
        what: What was used, in the user's words.
        error: Which module is not there.
    """
    package = (error.name or "").partition(".")[0]
    if package == _OURS:
        return error
    return Unavailable(
        f"{what} needs the package {package}, which this Python does not have.",
        hint='Run: pip install "jupyter-gpupool[all]"; or, for a pool elsewhere, install dask and'
        " distributed in the versions that gpupool.environments() shows.",
    )
