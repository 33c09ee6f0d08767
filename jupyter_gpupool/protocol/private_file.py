"""Files that hold a token: read only when nobody else could have read or written them.

Called by `discovery` and `embedded`.
"""

import os
import stat
from pathlib import Path

from jupyter_gpupool.pool.errors import NotAllowed, NotFound

_MOST_BYTES = 64 * 1024


def read_private(path: Path, *, what: str) -> str:
    """The text of a small file that belongs to us, or root, and that nobody else may read.

    Args:
        path: The file.
        what: What people call it, for the error's sentence.

    Raises:
        NotFound: If there is no such file.
        NotAllowed: If it is another's, open to others, or no ordinary file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NotFound(f"There is no {what} at {path}.") from None
    except OSError as error:
        raise NotAllowed(f"The {what} {path} cannot be read: {error.strerror}.") from error
    try:
        # Checked on the open file: the name could point elsewhere a moment later.
        _check(os.fstat(descriptor), path, what)
        return os.read(descriptor, _MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise NotAllowed(f"The {what} {path} cannot be read: {error.strerror}.") from error
    finally:
        os.close(descriptor)


def _check(status: os.stat_result, path: Path, what: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotAllowed(f"The {what} {path} is no ordinary file.")
    if status.st_uid not in (os.getuid(), 0):
        raise NotAllowed(
            f"The {what} {path} belongs to user {status.st_uid}, not to you.",
            hint="Remove it, or point to your own.",
        )
    if status.st_mode & 0o077:
        raise NotAllowed(
            f"The {what} {path} is open to other users (mode {status.st_mode & 0o777:04o}).",
            hint=f"Run: chmod 600 {path}; its token may be known to others, get a new one.",
        )
