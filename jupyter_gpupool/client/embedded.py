"""The user's own pool on this machine: found if it runs, else started, once, however many ask.

Called by `pools` when no pool is named. The manager is its own session and outlives us; it ends
by itself when nobody has used it for a while.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from jupyter_gpupool.pool.errors import Unavailable

from .address import PoolAddress
from .discovery import CA, TOKEN, TOKEN_FILE, URL, from_runtime_file, is_alive, runtime_file

START_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.01
_HEALTH_WITHIN_S = 2.0
_LOG_LINES = 3
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
    """

    runtime_file: Path
    options: tuple[str, ...] = ()
    start_within_s: float = field(default=START_WITHIN_S)

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


def find_or_start(plan: EmbeddedPlan | None = None) -> PoolAddress:
    """The address of the user's embedded pool, which answers.

    Raises:
        Unavailable: If it cannot be started, or does not answer.
        NotAllowed: If its runtime file is another's.
    """
    plan = plan or EmbeddedPlan(runtime_file=runtime_file())
    address = from_runtime_file(plan.runtime_file)
    if address is not None and answers(address):
        return address
    _make_folder(plan.runtime_file.parent)
    with _only_one(plan):
        address = from_runtime_file(plan.runtime_file)
        if address is not None and not _is_gone(address):
            return _wait_for_answer(address, plan)
        _check_installed()
        return _start(plan)


def answers(address: PoolAddress) -> bool:
    """Whether a manager answers there. Sends no token: it could be somebody else's port by now."""
    return _health(address) == "well"


def _is_gone(address: PoolAddress) -> bool:
    return _health(address) == "refused"


def _health(address: PoolAddress) -> str:
    parts = urlsplit(address.url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=_HEALTH_WITHIN_S)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        body = answer.read(1000)
    except ConnectionRefusedError:
        return "refused"
    except (OSError, HTTPException):
        return "silent"
    finally:
        connection.close()
    if answer.status == 200 and b'"ok"' in body:  # noqa: PLR2004 - HTTP's OK
        return "well"
    return "silent"


def _wait_for_answer(address: PoolAddress, plan: EmbeddedPlan) -> PoolAddress:
    deadline = time.monotonic() + min(5.0, plan.start_within_s)
    while not answers(address):
        if time.monotonic() > deadline:
            raise Unavailable(
                f"The manager of your embedded pool (process {address.manager_pid}) runs but does"
                " not answer.",
                hint=f"Look into {plan.log}, or end that process: the next claim starts another.",
            )
        time.sleep(0.1)
    return address


def _start(plan: EmbeddedPlan) -> PoolAddress:
    manager = spawn(plan)
    deadline = time.monotonic() + plan.start_within_s
    while time.monotonic() < deadline:
        address = from_runtime_file(plan.runtime_file)
        if address is not None and address.manager_pid == manager.pid and answers(address):
            return address
        if manager.returncode is not None or not is_alive(manager.pid):
            raise _failed(plan, "ended while it was starting")
        time.sleep(_LOOK_EVERY_S)
    manager.terminate()
    raise _failed(plan, f"was not ready within {plan.start_within_s:.0f} s")


def spawn(plan: EmbeddedPlan) -> subprocess.Popen[bytes]:
    """Start a manager in a session of its own, its words going to the plan's log."""
    with _private_log(plan.log) as log:
        manager = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            plan.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=_environment(),
            start_new_session=True,
        )
    # It is waited for in a thread, so that it leaves no zombie when it ends before us.
    threading.Thread(target=manager.wait, daemon=True, name="gpupool manager").start()
    return manager


def _environment() -> dict[str, str]:
    own = {URL, TOKEN, TOKEN_FILE, CA, "JPY_PARENT_PID"}
    return {name: value for name, value in os.environ.items() if name not in own}


def _failed(plan: EmbeddedPlan, what: str) -> Unavailable:
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
    return f": {words}" if words else "."


def _check_installed() -> None:
    missing: Sequence[str] = [name for module, name in _NEEDED.items() if not find_spec(module)]
    if missing:
        raise Unavailable(
            f"This Python cannot start a pool of its own: it lacks {', '.join(missing)}.",
            hint='Run: pip install "jupyter-gpupool[all]"; or name a pool with GPUPOOL_URL.',
        )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"The folder {folder} cannot be made: {error.strerror}.") from error


@contextlib.contextmanager
def _only_one(plan: EmbeddedPlan) -> Iterator[None]:
    """Twenty may ask at the same time: the first starts it, the others find it."""
    path = plan.runtime_file.with_suffix(".lock")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Unavailable(f"The lock {path} cannot be opened: {error.strerror}.") from error
    try:
        _lock_within(descriptor, path, 2 * plan.start_within_s)
        yield
    finally:
        os.close(descriptor)


def _lock_within(descriptor: int, path: Path, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"Another process has been starting the embedded pool for {within_s:.0f} s.",
                    hint=f"See who holds {path}.",
                ) from None
            time.sleep(2 * _LOOK_EVERY_S)
        else:
            return


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
