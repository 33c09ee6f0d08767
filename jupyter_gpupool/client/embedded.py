"""The user's own pool on this machine: found if it runs, else started, once, however many ask.

Called by `pools` when no pool is named. The manager is its own session and outlives us; it ends
by itself when nobody has used it for a while.
"""

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.units import format_duration

from .address import PoolAddress
from .discovery import from_runtime_file, is_alive, runtime_file
from .manager_process import (
    EmbeddedPlan,
    Health,
    check_installed,
    failed,
    health_of,
    spawn,
)
from .this_host import started_at

if TYPE_CHECKING:
    import subprocess

_LOOK_EVERY_S = 0.01
_ANSWER_WITHIN_S = 5.0
_STOP_WITHIN_S = 30.0


def find_or_start(plan: EmbeddedPlan | None = None) -> PoolAddress:
    """The address of the user's embedded pool, which answers.

    Raises:
        Unavailable: If it cannot be started, or does not answer.
        NotAllowed: If its runtime file is another's.
    """
    plan = plan or EmbeddedPlan(runtime_file=runtime_file())
    address = from_runtime_file(plan.runtime_file)
    if address is not None and health_of(address) is Health.WELL:
        return address
    _make_folder(plan.runtime_file.parent)
    with _only_one(plan):
        address = from_runtime_file(plan.runtime_file)
        if address is not None and health_of(address) is not Health.REFUSED:
            return _wait_for_answer(address, plan)
        check_installed()
        return _start(plan)


def _wait_for_answer(address: PoolAddress, plan: EmbeddedPlan) -> PoolAddress:
    deadline = time.monotonic() + _ANSWER_WITHIN_S
    while health_of(address) is not Health.WELL:
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
    started = started_at(manager.pid)
    try:
        return _wait_until_up(plan, manager)
    except BaseException:
        # Also after Ctrl-C: nobody would know of it.
        end(manager.pid, started, _STOP_WITHIN_S)
        raise


def _wait_until_up(plan: EmbeddedPlan, manager: "subprocess.Popen[bytes]") -> PoolAddress:
    """Its address; or another manager's, if that one has its place and it has told us so."""
    deadline = time.monotonic() + plan.start_within_s
    while time.monotonic() < deadline:
        # Before the file is read, which is written before its end.
        has_ended = not is_alive(manager.pid)
        address = from_runtime_file(plan.runtime_file)
        if address is not None and health_of(address) is Health.WELL:
            return address
        if has_ended and address is not None:
            return _wait_for_answer(address, plan)
        if has_ended:
            raise failed(plan, f"{_end_in_words(manager.poll())} while it was starting")
        time.sleep(_LOOK_EVERY_S)
    raise failed(plan, f"was not ready within {format_duration(plan.start_within_s)}")


def _end_in_words(status: int | None) -> str:
    return f"was ended by signal {-status}" if status is not None and status < 0 else "ended"


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
                    "Another process has been starting the embedded pool for"
                    f" {format_duration(within_s)}.",
                    hint=f"See who holds {path}.",
                ) from None
            time.sleep(2 * _LOOK_EVERY_S)
        else:
            return


class EmbeddedPool:
    """A private embedded pool in a folder of its own, gone with all it started on exit.

    It is gone as well when the process that made it is killed. For the demo and for tests; claims
    made in it end with it. Devices that it simulates are its own, while simulated ones are
    otherwise shared by all pools of a machine, as real ones are.

    Attributes:
        address: Where its manager is, once started.
    """

    def __init__(self, folder: Path, *, options: tuple[str, ...] = ()) -> None:
        # Both folders are said: a private pool never meets the agent of the user's own.
        folders = (f"--state={folder / 'state'}", f"--agent-state={folder / 'agent'}")
        self._plan = EmbeddedPlan(
            runtime_file=folder / "run" / "gpupool.json",
            options=(*folders, "--stop-all-on-exit", f"--ends-with={os.getpid()}", *options),
            config_folder=folder / "config",
        )
        self.address: PoolAddress | None = None

    def start(self) -> PoolAddress:
        """Start it and return where it is.

        Raises:
            Unavailable: If it does not come up.
        """
        self._write_config()
        self.address = find_or_start(self._plan)
        return self.address

    def stop(self) -> None:
        """Ask the manager to end everything, and wait for it; in the end, kill it."""
        if self.address is not None:
            end_pool(self.address)

    def _write_config(self) -> None:
        folder = self._plan.config_folder
        assert folder is not None, "set when this was made"
        config = {"AgentApp": {"simulated_host": str(folder.parent)}}
        _make_folder(folder)
        (folder / "jupyter_gpupool_config.json").write_text(json.dumps(config), encoding="utf-8")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def end_pool(address: PoolAddress) -> None:
    """End the embedded manager there; with it ends its agent, unless claims live."""
    if address.manager_pid is not None:
        end(address.manager_pid, address.manager_started, _STOP_WITHIN_S)


def end(pid: int, started: int | None, within_s: float) -> None:
    """End the manager of this number that started then, first by asking."""
    deadline = time.monotonic() + within_s
    _signal(pid, started, signal.SIGTERM)
    while _is_it(pid, started):
        if time.monotonic() > deadline:
            _signal(pid, started, signal.SIGKILL)
            return
        time.sleep(_LOOK_EVERY_S)


def _signal(pid: int, started: int | None, number: signal.Signals) -> None:
    # It may have ended long ago, and its number be a stranger's by now.
    if _is_it(pid, started):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _is_it(pid: int, started: int | None) -> bool:
    return started is not None and started_at(pid) == started
