"""The manager's state folder: private, and one manager's at a time."""

import fcntl
import os
from pathlib import Path

from jupyter_gpupool.pool.errors import Unavailable


class InUse(Unavailable):
    """Another manager uses the state folder."""


class StateFolder:
    """A locked state folder; the lock goes with the process, however it ends.

    Raises:
        InUse: If another manager uses it.
        Unavailable: If it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(
                path / "manager.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise Unavailable(
                f"The state folder {path} cannot be used: {error.strerror}.",
                hint="Choose another with --state, or change its rights.",
            ) from error
        self._take()

    @property
    def database_url(self) -> str:
        """The database that lies in it."""
        return f"sqlite:///{self.path / 'manager.sqlite'}"

    def release(self) -> None:
        """Let another manager have it."""
        os.close(self._lock)

    def _take(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(self._lock, 20, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._lock)
            raise InUse(
                f"Another manager (pid {pid}) uses the state folder {self.path}.",
                hint="Stop it first, or choose another folder with --state.",
            ) from None
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise Unavailable(
                f"The state folder {self.path} cannot be written: {error.strerror}.",
                hint="Make room, or change its rights.",
            ) from error
