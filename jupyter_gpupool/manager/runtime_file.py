"""The file by which this user's kernels and scripts find their embedded pool.

Written once the manager listens, removed when it ends if it is still its own.
"""

import contextlib
import json
import os
from datetime import datetime
from pathlib import Path

from .private_files import read_private, write_private


def write_runtime_file(path: Path, *, url: str, token: str, started: datetime) -> None:
    """Tell clients where the pool is. The token in it is its user's own."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = {
        "url": url,
        "token": token,
        "manager_pid": os.getpid(),
        "started": started.isoformat(),
    }
    write_private(path, json.dumps(told))


def remove_runtime_file(path: Path) -> None:
    """Remove the file, unless a newer manager has written its own."""
    with contextlib.suppress(ValueError, AttributeError, OSError):
        if json.loads(read_private(path)).get("manager_pid") == os.getpid():
            path.unlink()
