"""Which versions of Python and of the packages that have to agree an interpreter has.

Standard library only, and readable by old Pythons: an agent hands this file's text to interpreters
of other environments. Also called by zygotes, and by kernels, which tell what they claim from.
"""

from __future__ import annotations

import contextlib
import json
import platform
from importlib.metadata import version

PACKAGES = ("dask", "distributed", "dask-cuda", "msgpack", "cloudpickle", "numpy")


def read_versions() -> dict[str, str]:
    """Of "python" and of those packages that are installed; imports none of them."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        # A damaged installation may raise anything, and is then as good as none.
        with contextlib.suppress(Exception):
            found[package] = str(version(package))
    return found


if __name__ == "__main__":
    print(json.dumps(read_versions()))  # noqa: T201 - whoever started it reads this
