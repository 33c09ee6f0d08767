"""Starts a pool's processes with nothing of this machine's in their environment but what they need.

Called by the running pool. Every process carries the pool's mark, and so does all that it starts:
that is how nothing of a pool outlives its scenario.
"""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .processes import Process, carrying, kill_all, process

_KEPT = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH")
_LOG_TAIL_BYTES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a pool is to be started.

    Attributes:
        as_uid: Whose processes they are; None is the tests' own user.
        os_user: Whose processes plain users' workers are; None is the pool's own user.
    """

    manager_options: tuple[str, ...] = ()
    agent_options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    as_uid: int | None = None
    os_user: str | None = None
    interpreter: Path = Path(sys.executable)


class Launcher:
    """Starts processes in one folder, and ends them all."""

    def __init__(self, folder: Path, setup: Setup) -> None:
        self.folder = folder
        self.setup = setup
        self._popens: list[subprocess.Popen[bytes]] = []
        # Workers of another user have to get through to their claim's folder.
        folder.chmod(0o711)
        for name in ("home", "run", "logs", "config"):
            (folder / name).mkdir()
        give(folder, setup.as_uid)

    @property
    def mark(self) -> str:
        """What every process of this pool has in its environment, whoever started it."""
        return f"GPUPOOL_TEST_POOL={self.folder}"

    def spawn(self, name: str, command: list[str], environment: Mapping[str, str]) -> Process:
        log = self.folder / "logs" / f"{name}.log"
        with log.open("ab") as out:
            popen = subprocess.Popen(
                [str(self.setup.interpreter), *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.environment(environment),
                cwd=self.folder,
                start_new_session=True,
                user=self.setup.as_uid,
                group=self.setup.as_uid,
                extra_groups=None if self.setup.as_uid is None else [],
            )
        self._popens.append(popen)
        found = process(popen.pid)
        assert found is not None, f"{name} has just been started"
        return found

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        own = {
            "GPUPOOL_TEST_POOL": str(self.folder),
            "HOME": str(self.folder / "home"),
            "JUPYTER_RUNTIME_DIR": str(self.folder / "run"),
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "home" / "state"),
            "XDG_CACHE_HOME": str(self.folder / "home" / "cache"),
        }
        return {**kept, **own, **self.setup.environment, **more}

    def end_all(self) -> None:
        """End everything that carries the mark, and only that."""
        while left := carrying(self.mark):
            kill_all(left)
        for popen in self._popens:
            popen.wait(10)


def free_port() -> int:
    """A port of loopback that nobody listens on, and that no connection of others takes next."""
    while True:
        port = random.SystemRandom().randrange(15_000, 30_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def tail(path: Path) -> str:
    """The last lines of a log."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
        return file.read().decode(errors="replace")


def give(path: Path, uid: int | None) -> None:
    """Make a file, or a folder with all in it, another user's; None leaves it."""
    if uid is not None:
        for found in (path, *path.rglob("*")):
            shutil.chown(found, uid, uid)
