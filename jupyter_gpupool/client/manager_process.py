"""The process of an embedded manager: how it is started, whether it answers, its last words.

Called by `embedded`, which decides when. It is its own session and outlives whoever started it.
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from jupyter_gpupool.pool.errors import Unavailable

from .address import PoolAddress
from .discovery import CA, TOKEN, TOKEN_FILE, URL

START_WITHIN_S = 30.0
_HEALTH_WITHIN_S = 2.0
_LOG_LINES = 3
_CONFIG_PATH = "JUPYTER_CONFIG_PATH"
_NEEDED = {
    "alembic": "alembic",
    "cryptography": "cryptography",
    "dask_cuda": "dask-cuda",
    "distributed": "distributed",
    "fastapi": "fastapi",
    "psutil": "psutil",
    "pynvml": "nvidia-ml-py",
    "sqlalchemy": "sqlalchemy",
    "uvicorn": "uvicorn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedPlan:
    """How an embedded manager is started.

    Attributes:
        runtime_file: Where it says how it is reached; its log and the lock lie beside it.
        options: More arguments for the manager. No secret: others can read them.
        config_folder: Where its and its agent's configuration is looked for first; None is
            Jupyter's folders alone.
    """

    runtime_file: Path
    options: tuple[str, ...] = ()
    config_folder: Path | None = None
    start_within_s: float = START_WITHIN_S

    @property
    def log(self) -> Path:
        """What the manager and its agent have to say."""
        return self.runtime_file.with_suffix(".log")

    def command(self) -> tuple[str, ...]:
        """The manager's command line."""
        return (
            sys.executable,
            "-m",
            "jupyter_gpupool.manager",
            "--embedded",
            f"--runtime-file={self.runtime_file}",
            *self.options,
        )


class Health(StrEnum):
    """What a manager's address has to say, asked without a token: it may be another's by now."""

    WELL = "well"
    SILENT = "silent"
    """Something is there, but it does not answer as a manager that is well."""
    REFUSED = "refused"
    """Nobody listens there."""


def health_of(address: PoolAddress) -> Health:
    """Ask the manager how it is; takes two seconds at most."""
    parts = urlsplit(address.url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_HEALTH_WITHIN_S)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        body = answer.read(1000)
    except ConnectionRefusedError:
        return Health.REFUSED
    except (OSError, HTTPException):
        return Health.SILENT
    finally:
        connection.close()
    is_well = answer.status == 200 and b'"ok"' in body  # noqa: PLR2004 - HTTP's OK
    return Health.WELL if is_well else Health.SILENT


def check_installed() -> None:
    """See whether this Python has what a manager and an agent need.

    Raises:
        Unavailable: If not; names what is missing.
    """
    missing = [name for module, name in _NEEDED.items() if not find_spec(module)]
    if missing:
        raise Unavailable(
            f"This Python cannot start a pool of its own: it lacks {', '.join(missing)}.",
            hint='Run: pip install "jupyter-gpupool[all]"; or name a pool with GPUPOOL_URL.',
        )


def spawn(plan: EmbeddedPlan) -> subprocess.Popen[bytes]:
    """Start a manager in a session of its own, its words going to the plan's log."""
    with _private_log(plan.log) as log:
        manager = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            plan.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=_environment(plan),
            start_new_session=True,
        )
    # It is waited for in a thread, so that it leaves no zombie when it ends before us.
    threading.Thread(target=manager.wait, daemon=True, name="gpupool manager").start()
    return manager


def _environment(plan: EmbeddedPlan) -> dict[str, str]:
    own = {URL, TOKEN, TOKEN_FILE, CA, "JPY_PARENT_PID"}
    kept = {name: value for name, value in os.environ.items() if name not in own}
    if plan.config_folder is not None:
        folders = (str(plan.config_folder), kept.get(_CONFIG_PATH, ""))
        kept[_CONFIG_PATH] = os.pathsep.join(filter(None, folders))
    return kept


def failed(plan: EmbeddedPlan, what: str) -> Unavailable:
    """The error for a manager that did not come up, with its last words."""
    return Unavailable(
        f"The manager of your embedded pool {what}{_last_words(plan.log)}",
        hint=f"Its log is {plan.log}.",
    )


def _last_words(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "."
    words = " | ".join(line.strip()[:300] for line in lines[-_LOG_LINES:])
    if not words and not os.statvfs(log.parent).f_bavail:
        # Which is why it is empty, and most likely what went wrong.
        words = f"the disk of {log.parent} is full"
    return f": {words.rstrip('.')}." if words else "."


@contextlib.contextmanager
def _private_log(path: Path) -> Iterator[int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise Unavailable(f"The log {path} cannot be written: {error.strerror}.") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
