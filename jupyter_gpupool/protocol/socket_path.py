"""Names a Unix socket by a path the kernel takes, however deep its folder lies.

Called by both ends of the agent's socket: the agent and its children. Standard library only.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LONGEST_BYTES = 107
"""What fits into the kernel's `sockaddr_un` before its closing zero."""


@contextmanager
def reachable(path: str) -> Iterator[str]:
    """The path, or a short one through its folder, which is good while this is entered."""
    if len(os.fsencode(path)) <= _LONGEST_BYTES:
        yield path
        return
    folder = os.open(Path(path).parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{Path(path).name}"
    finally:
        os.close(folder)
