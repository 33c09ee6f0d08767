"""Small files that only their owner may read, written whole or not at all.

Used for tokens, the runtime file and the remembered port.
"""

import contextlib
import os
import secrets
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Put a 0600 file in place at once; a reader sees the old one or the new one."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def read_private(path: Path) -> str:
    """The text, or "" if the file is missing, or others may have written it."""
    try:
        status = path.stat(follow_symlinks=False)
        if status.st_uid != os.getuid() or status.st_mode & 0o077:
            return ""
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
