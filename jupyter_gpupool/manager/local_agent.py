"""The embedded pool's own agent: kept alive on this machine, in a session of its own.

It outlives a manager that is killed, and the next manager finds it by its lock; so it is started
only while no agent holds its state folder. Only agents that were started here are ever ended: their
pids and the times they started stand in a file of the manager's, and each carries that file's path
in its environment, for a manager can be killed before it has written, or its agent has locked.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .open_files import Limit, give_limit
from .owner import watched
from .private_files import read_private, write_private
from .runtime_file import started_at

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_LOOK_EVERY_S = 2.0
_WELL_AFTER_S = 60.0
_STOP_WITHIN_S = 5.0
_LOOK_AT_END_EVERY_S = 0.02
_MARK = "GPUPOOL_KEPT_BY"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """How to start the agent.

    Attributes:
        simulated: How many simulated devices; None lets it look for real ones.
        log: File that takes its output.
        record: File that says which processes were started so.
    """

    url: str
    state: Path
    simulated: int | None
    log: Path
    record: Path

    def argv(self) -> list[str]:
        """Its command line, which holds no secret."""
        simulated = [] if self.simulated is None else [f"--simulated={self.simulated}"]
        own = ["-m", "jupyter_gpupool.agent", f"--join={self.url}", f"--state={self.state}"]
        # An embedded pool is its user's own, and that user may be root.
        return [sys.executable, *own, "--run-claims-as-agent", *simulated]


class LocalAgent:
    """Keeps one agent running."""

    def __init__(
        self,
        command: AgentCommand,
        token: str,
        files: Limit,
        *,
        first: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        self._command = command
        self._files = files
        self._token = token
        self._task: asyncio.Task[None] | None = None
        self._process = first

    def start(self, *, replace: bool) -> None:
        """Begin, with the agent that was started already if one was.

        `replace` ends an agent that an earlier manager left at another address.
        """
        if self._process is not None:
            self._write_down(self._process.pid)
        elif replace:
            self._signal_own()
        self._task = asyncio.create_task(self._keep(), name="gpupool-local-agent")

    async def stop(self) -> None:
        """End the agent, also one that an earlier manager left; what it started lives on."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            await self._wait_for_end(self._process)
        if self._signal_own():
            await self._wait_for_own()

    async def _keep(self) -> None:
        pause_s = _FIRST_PAUSE_S
        is_told = False
        while True:
            if self._process is None and is_held(self._command.state):
                if not is_told and not self._own():
                    is_told = True
                    _LOG.warning("An agent of another pool uses %s", self._command.state)
                await asyncio.sleep(_LOOK_EVERY_S)
                continue
            loop = asyncio.get_running_loop()
            started_s = loop.time()
            if self._process is None:
                self._process = launch(self._command, self._token)
                give_limit(self._process.pid, self._files)
                self._write_down(self._process.pid)
            status = await _ended(self._process)
            self._process = None
            ran_s = loop.time() - started_s
            pause_s = (
                _FIRST_PAUSE_S if ran_s > _WELL_AFTER_S else min(pause_s * 2, _LONGEST_PAUSE_S)
            )
            _LOG.warning("The agent ended with %s; see %s", status, self._command.log)
            await asyncio.sleep(pause_s)

    def _write_down(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            lines = [f"{each} {started_at(each)}" for each in {*self._own(), pid}]
            write_private(self._command.record, "\n".join(lines))

    def _own(self) -> set[int]:
        """The pids of all agents that this pool has started and that run."""
        own = self._marked_holder()
        for line in read_private(self._command.record).splitlines():
            with contextlib.suppress(OSError, ValueError, IndexError):
                pid, started = map(int, line.split())
                if started_at(pid) == started and not _is_dead(pid):
                    own.add(pid)
        return own

    def _marked_holder(self) -> set[int]:
        """The agent that holds the state folder, if its environment says that it is ours."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            holder = int((self._command.state / "agent.lock").read_text().split()[0])
            environment = Path(f"/proc/{holder}/environ").read_bytes().split(b"\0")
            if os.fsencode(f"{_MARK}={self._command.record}") in environment:
                return {holder} if is_held(self._command.state) else set()
        return set()

    def _signal_own(self) -> bool:
        own = self._own()
        for pid in own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return bool(own)

    async def _wait_for_own(self) -> None:
        # They are no children of ours.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_WITHIN_S):
                while self._own():  # noqa: ASYNC110 - processes of strangers
                    await asyncio.sleep(_LOOK_AT_END_EVERY_S)

    @staticmethod
    async def _wait_for_end(process: "subprocess.Popen[bytes]") -> None:
        try:
            async with asyncio.timeout(_STOP_WITHIN_S):
                await _ended(process)
        except TimeoutError:
            process.kill()
            await _ended(process)


def launch(command: AgentCommand, token: str) -> "subprocess.Popen[bytes]":
    """Start an agent in a session of its own, its output going to its log."""
    command.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    log = os.open(command.log, flags, 0o600)
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command.argv(),
            env=_environment(token, command.record),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)


async def _ended(process: "subprocess.Popen[bytes]") -> int:
    has_ended = asyncio.Event()
    with watched(process.pid, has_ended.set):
        await has_ended.wait()
    return process.wait()


def _is_dead(pid: int) -> bool:
    """Whether it has ended and is only still to be reaped."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"


def is_held(state: Path) -> bool:
    """Whether an agent holds this state folder."""
    try:
        lock = os.open(state / "agent.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _environment(token: str, record: Path) -> Mapping[str, str]:
    return os.environ | {"GPUPOOL_TOKEN": token, _MARK: str(record)}
