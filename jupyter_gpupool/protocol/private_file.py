"""Files that hold a token: read only when nobody else could have read or written them.

Called by `client.discovery`, `agent.app` and the doctor. Whatever is wrong with one is a sentence
that says what to do.
"""

import os
import re
import stat
from pathlib import Path

from jupyter_gpupool.pool.errors import NotAllowed, NotAuthenticated, NotFound

_MOST_BYTES = 64 * 1024
_TOKEN = re.compile(r"[!-~]+")
"""Visible ASCII: nothing else can be sent."""


def read_token(name: str, *, otherwise: str) -> str:
    """The token that a user's or an agent's file holds.

    Args:
        name: The file's path; "~" is a home.
        otherwise: What would do as well, such as "set GPUPOOL_TOKEN", for the hints.

    Raises:
        NotFound: If there is no such file.
        NotAllowed: If it cannot be read, is another's, open to others, or no ordinary file.
        NotAuthenticated: If it is empty, or what it holds is no token.
    """
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - of an unknown user, it stays
    token = read_private(
        path,
        what="token file",
        hint=f"Name a file with the token that only you can read (chmod 600), or {otherwise}.",
    ).strip()
    if not token:
        hint = f"Write the token into it, or {otherwise}."
        raise NotAuthenticated(f"The token file {path} is empty.", hint=hint)
    if not _TOKEN.fullmatch(token):
        raise NotAuthenticated(
            f"The token file {path} holds no token, but more than visible ASCII.",
            hint="Copy the token again, alone on one line and without quotes.",
        )
    return token


def read_private(path: Path, *, what: str, hint: str = "") -> str:
    """The text of a small file that belongs to us, or root, and that nobody else may read.

    Args:
        path: The file.
        what: What people call it, for the error's sentence.
        hint: What to do if it cannot be read.

    Raises:
        NotFound: If there is no such file.
        NotAllowed: If it cannot be read, is another's, open to others, or no ordinary file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NotFound(f"There is no {what} at {path}.", hint=hint) from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, what, error, hint) from error
    try:
        # Checked on the open file: the name could point elsewhere a moment later.
        _check(os.fstat(descriptor), path, what, hint)
        return os.read(descriptor, _MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise _unreadable(path, what, error, hint) from error
    finally:
        os.close(descriptor)


def _unreadable(path: Path, what: str, error: Exception, hint: str) -> NotAllowed:
    # Of a null byte each Python says something else.
    why = error.strerror if isinstance(error, OSError) else "its name holds a null byte"
    return NotAllowed(f"The {what} {path} cannot be read: {why}.", hint=hint)


def _check(status: os.stat_result, path: Path, what: str, hint: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotAllowed(f"The {what} {path} is no ordinary file.", hint=hint)
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
