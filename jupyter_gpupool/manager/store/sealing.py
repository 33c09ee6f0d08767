"""Sealing secrets before they are stored: claims' keys and variables, and answers that hold one.

The key lies in a 0600 file of the state folder, apart from the database, so that a copy of the
database alone opens nothing.
"""

import os
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from jupyter_gpupool.pool.errors import Unavailable


class Seal:
    """Closes and opens texts with the manager's own key."""

    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(key)

    def close(self, text: str) -> str:
        """The text, unreadable without the key."""
        return self._fernet.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        """The text again.

        Raises:
            Unavailable: If it was closed with another key.
        """
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken as error:
            raise Unavailable(
                "The database was sealed with another key than that of this state folder.",
                hint="Put back the file secret-key that belongs to this database.",
            ) from error


def load_seal(path: Path) -> Seal:
    """The seal of a state folder, made on first use.

    Raises:
        Unavailable: If the file holds no key, or others may read it.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path)
    with os.fdopen(descriptor, "wb") as file:
        file.write(Fernet.generate_key())
        file.flush()
        os.fsync(file.fileno())
    return _read(path)


def _read(path: Path) -> Seal:
    if path.stat().st_mode & 0o077:
        raise Unavailable(
            f"{path} may be read by others, and it is secret.", hint=f"Run: chmod 600 {path}"
        )
    try:
        return Seal(path.read_bytes().strip())
    except ValueError as error:
        raise Unavailable(
            f"{path} holds no key.",
            hint="Put back the file that belongs to this database, or start with a new folder.",
        ) from error
