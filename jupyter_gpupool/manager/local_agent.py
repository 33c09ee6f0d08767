"""The embedded pool's own agent: kept alive on this machine, in a session of its own.

It outlives a manager that is killed, and the next manager finds it by its lock; so it is started
only while no agent holds its state folder. Only agents that were started here are ever ended
(`own_agents.py`).
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .last_words import last_words
from .open_files import Limit, give_limit
from .own_agents import MARK, OwnAgents, is_held
from .owner import watched

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_LOOK_EVERY_S = 2.0
_WELL_AFTER_S = 60.0
_STOP_WITHIN_S = 5.0
_LOOK_AT_END_EVERY_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """How to start the agent.

    Attributes:
        simulated: How many simulated devices; None lets it look for real ones.
        orphan_after_s: When it gives up, also on a manager that never let it in.
        log: File that takes its output.
        record: File that says which processes were started so.
    """

    url: str
    state: Path
    simulated: int | None
    orphan_after_s: float
    log: Path
    record: Path

    def argv(self) -> list[str]:
        """Its command line, which holds no secret."""
        simulated = [] if self.simulated is None else [f"--simulated={self.simulated}"]
        own = ["-m", "jupyter_gpupool.agent", f"--join={self.url}", f"--state={self.state}"]
        orphan = f"--orphan-after={self.orphan_after_s}"
        # An embedded pool is its user's own, and that user may be root.
        return [sys.executable, *own, orphan, "--run-claims-as-agent", *simulated]


class LocalAgent:
    """Keeps one agent running.

    Args:
        command: How it is started.
        token: What it shows.
        files: How many files it may have open.
        tell: Told why there is no agent, each time one has ended or cannot be started.
        first: The agent that was started already, if one was.
    """

    def __init__(
        self,
        command: AgentCommand,
        token: str,
        files: Limit,
        *,
        tell: Callable[[str], Awaitable[None]],
        first: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        self._command = command
        self._tell = tell
        self._files = files
        self._token = token
        self._task: asyncio.Task[None] | None = None
        self._process = first
        self._own = OwnAgents(command.record, command.state)

    def start(self, *, replace: bool) -> None:
        """Begin, with the agent that was started already if one was.

        `replace` ends an agent that an earlier manager left at another address.
        """
        if self._process is not None:
            self._own.write_down(self._process.pid)
        elif replace:
            self._own.signal(signal.SIGTERM)
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
        if self._own.signal(signal.SIGTERM):
            await self._wait_for_own()

    async def _keep(self) -> None:
        pause_s = _FIRST_PAUSE_S
        is_told = False
        while True:
            if self._process is None and is_held(self._command.state):
                own = self._own.pids()
                if not is_told and not own:
                    is_told = True
                    _LOG.warning("An agent of another pool uses %s", self._command.state)
                await _look_again(own)
                self._own.end_stopped()
                continue
            loop = asyncio.get_running_loop()
            started_s = loop.time()
            problem = await self._run_once()
            ran_s = loop.time() - started_s
            pause_s = (
                _FIRST_PAUSE_S if ran_s > _WELL_AFTER_S else min(pause_s * 2, _LONGEST_PAUSE_S)
            )
            _LOG.warning("%s See %s", problem, self._command.log)
            await self._tell(problem)
            await asyncio.sleep(pause_s)

    async def _run_once(self) -> str:
        """Start an agent unless one is there, and wait for its end; why there is none now."""
        try:
            if self._process is None:
                self._process = launch(self._command, self._token)
                give_limit(self._process.pid, self._files)
                self._own.write_down(self._process.pid)
            status = await self._watched(self._process)
        except OSError as error:
            # For want of room, files or processes, which may pass: it is not given up for good.
            return f"The agent of this pool cannot be started: {error.strerror}."
        self._process = None
        return _end_in_words(status, self._command.log)

    async def _watched(self, process: "subprocess.Popen[bytes]") -> int:
        """How it ended; meanwhile it is seen to that it can."""
        ended = asyncio.ensure_future(_ended(process))
        try:
            while not ended.done():
                await asyncio.wait((ended,), timeout=_LOOK_EVERY_S)
                self._own.end_stopped()
            return ended.result()
        finally:
            ended.cancel()

    async def _wait_for_own(self) -> None:
        # They are no children of ours.
        try:
            async with asyncio.timeout(_STOP_WITHIN_S):
                while self._own.pids():  # noqa: ASYNC110 - processes of strangers
                    await asyncio.sleep(_LOOK_AT_END_EVERY_S)
        except TimeoutError:
            self._own.signal(signal.SIGKILL)

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


def _end_in_words(status: int, log: Path) -> str:
    if status < 0:
        return f"The agent of this pool was ended by signal {-status}."
    said = last_words(log) if status else ""
    return f"The agent of this pool has ended{f': {said}' if said else ''}".rstrip(".") + "."


async def _look_again(pids: Iterable[int]) -> None:
    """Wait until one of these ends, or for a while."""
    has_ended = asyncio.Event()
    with contextlib.ExitStack() as stack, contextlib.suppress(TimeoutError):
        for pid in pids:
            stack.enter_context(watched(pid, has_ended.set))
        async with asyncio.timeout(_LOOK_EVERY_S):
            await has_ended.wait()


async def _ended(process: "subprocess.Popen[bytes]") -> int:
    has_ended = asyncio.Event()
    with watched(process.pid, has_ended.set):
        await has_ended.wait()
    return process.wait()


def _environment(token: str, record: Path) -> Mapping[str, str]:
    return os.environ | {"GPUPOOL_TOKEN": token, MARK: str(record)}
