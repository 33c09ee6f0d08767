"""Sealing secrets before they are stored: claims' keys and variables, and answers that hold one.

The key lies in a 0600 file of the state folder, apart from the database, so that a copy of the
database alone opens nothing.
"""

from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from jupyter_gpupool.manager.private_files import write_private
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
        if not path.exists() or _is_unborn(path):
            # Whole or not at all: an empty file would bar every later start.
            write_private(path, Fernet.generate_key().decode())
        return _read(path)
    except OSError as error:
        raise Unavailable(
            f"The key {path} cannot be made or read: {error.strerror}.",
            hint="Make room, or change the rights of the state folder.",
        ) from error


def _is_unborn(path: Path) -> bool:
    # An older version that was killed at its very first start left an empty file behind.
    return path.stat().st_size == 0 and not path.with_name("manager.sqlite").exists()


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
