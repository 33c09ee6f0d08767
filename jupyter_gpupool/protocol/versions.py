"""What a Python environment has: versions of what has to agree, and what it lacks for workers.

Standard library only, and read by old Pythons too: an agent hands this file's text to interpreters
of other environments. Zygotes call it as well, and so may kernels, which tell what they claim from.
Nothing of what it looks for is imported.
"""

from __future__ import annotations

import contextlib
import json
import platform
import sys
from importlib.metadata import version
from importlib.util import find_spec

PACKAGES = ("dask", "distributed", "dask-cuda", "msgpack", "cloudpickle", "numpy")
_OLDEST_PYTHON = (3, 11)
_NEEDED = {
    "dask": "dask",
    "distributed": "distributed",
    "dask_cuda": "dask-cuda",
    "cuda.bindings": "cuda-bindings",
    "bokeh": "bokeh",
}
"""Modules that an environment has to bring, and what pip calls them; dask_cuda needs cuda.bindings
without saying so, and distributed's dashboard needs bokeh."""


def read_versions() -> dict[str, str]:
    """Of "python" and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        # A damaged installation may raise anything, and is then as good as none.
        with contextlib.suppress(Exception):
            found[package] = str(version(package))
    return found


def what_lacks() -> str:
    """What keeps workers from running here, with the line that mends it; "" if nothing is known."""
    if sys.version_info < _OLDEST_PYTHON:
        return f"it has Python {platform.python_version()}, and workers need 3.11 or newer"
    lacking = [name for name in _NEEDED if not _is_there(name)]
    if not lacking:
        return ""
    packages = " ".join(_NEEDED[name] for name in lacking)
    return f"it lacks {', '.join(lacking)}: {sys.executable} -m pip install {packages}"


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        # Not even the package that it is in.
        return False


if __name__ == "__main__":
    # Whoever started it reads this.
    sys.stdout.write(json.dumps({"versions": read_versions(), "problem": what_lacks()}))
