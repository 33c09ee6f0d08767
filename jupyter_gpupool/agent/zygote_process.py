"""One zygote as the agent sees it: a process, a socket pair, and what travels on it.

Called by `zygotes`, which decides whose zygote it is and when another one is needed.
"""

import asyncio
import itertools
import logging
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.launch import Exited, Fork, Forked, Launch, Warm, decode

from .launch_file import launch_file

logger = logging.getLogger(__name__)

_MOST_BYTES = 256 * 1024
_LAST_LINES = 10
_LAST_BYTES = 8192
_MOST_LOG_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ZygoteCommand:
    """How a zygote is started.

    Attributes:
        user: Whom it runs as; None is the agent's own user.
        environ: Its whole environment.
    """

    arguments: tuple[str, ...]
    user: int | None
    group: int | None
    groups: tuple[int, ...]
    environ: Mapping[str, str]
    log: Path


class NotSent(Unavailable):
    """The zygote was gone before it was asked: nothing was forked, another one may be asked."""


class ZygoteProcess:
    """A running zygote. It is of no more use once `is_gone`.

    Args:
        exited: Told of each child's end, after the `fork` that made it has returned.
        gone: Told once, when the zygote has hung up.
    """

    def __init__(
        self,
        command: ZygoteCommand,
        *,
        exited: Callable[[int, int], None],
        gone: Callable[[], None],
    ) -> None:
        self._exited = exited
        self._gone = gone
        self._log = command.log
        self._tickets = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Forked]] = {}
        self._fresh: dict[int, list[Exited]] = {}
        self._loop = asyncio.get_running_loop()
        self._warm: asyncio.Future[Warm] = self._loop.create_future()
        self._left_unread = False
        self.is_gone = False
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as undo:
            undo.enter_context(self._link)
            self._process = _start(command, theirs)
            undo.pop_all()
        self._link.setblocking(False)
        self._loop.add_reader(self._link, self._hear)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    async def warm(self, deadline_s: float) -> Warm:
        """Wait until it can fork.

        Raises:
            Unavailable: If it died before, or took too long.
        """
        try:
            return await asyncio.wait_for(asyncio.shield(self._warm), deadline_s)
        except TimeoutError:
            self.kill()
            raise self._unavailable(f"did not get warm within {deadline_s:.0f} s") from None

    async def fork(
        self, request: Fork, launch: Launch, *, log_fd: int, lock_fd: int | None, deadline_s: float
    ) -> int:
        """Have a child forked.

        Raises:
            NotSent: If the zygote was gone already.
            Unavailable: If there is no child: the zygote could not fork, died or hangs.
        """
        ticket = next(self._tickets)
        answer: asyncio.Future[Forked] = self._loop.create_future()
        self._waiting[ticket] = answer
        try:
            with ExitStack() as stack:
                given = {"launch": stack.enter_context(launch_file(launch)), "log": log_fd}
                if lock_fd is not None:
                    given["lock"] = lock_fd
                await self._send(_numbered(request, ticket, tuple(given)), tuple(given.values()))
            forked = await asyncio.wait_for(answer, deadline_s)
        except TimeoutError:
            self.kill()
            raise self._unavailable(f"did not answer within {deadline_s:.0f} s") from None
        finally:
            self._waiting.pop(ticket, None)
        if forked.pid is None:
            raise self._unavailable(f"could not start a process: {forked.problem}")
        self._loop.call_soon(self._tell_held, forked.pid)
        return forked.pid

    def hang_up(self) -> None:
        """Let it end by itself; its children live on."""
        if not self.is_gone:
            self._end()

    def kill(self) -> None:
        """End it at once; its children live on."""
        self._process.kill()
        self.hang_up()

    async def _send(self, line: bytes, descriptors: Sequence[int]) -> None:
        while not self.is_gone:
            try:
                socket.send_fds(self._link, [line], descriptors)
            except BlockingIOError:
                await self._writable()
            except OSError:
                self.hang_up()
            else:
                return
        raise _not_sent()

    async def _writable(self) -> None:
        free = asyncio.Event()
        self._loop.add_writer(self._link, free.set)
        try:
            await free.wait()
        finally:
            self._loop.remove_writer(self._link)

    def _hear(self) -> None:
        try:
            line = self._link.recv(_MOST_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            # So the kernel tells that it died with requests unread; its last answers come next.
            self._left_unread = True
            return
        except OSError:
            line = b""
        if not line:
            self._end()
            return
        message = decode(line)
        if isinstance(message, Forked):
            self._take_answer(message)
        elif isinstance(message, Exited):
            self._take_end(message)
        elif isinstance(message, Warm) and not self._warm.done():
            self._warm.set_result(message)

    def _take_answer(self, forked: Forked) -> None:
        answer = self._waiting.get(forked.ticket)
        if answer is not None and not answer.done():
            if forked.pid is not None:
                self._fresh[forked.pid] = []
            answer.set_result(forked)
        elif forked.pid is not None:
            # Whoever asked for it has gone: nobody would ever look after this process.
            os.kill(forked.pid, 9)

    def _take_end(self, end: Exited) -> None:
        if end.pid in self._fresh:
            self._fresh[end.pid].append(end)
        else:
            self._exited(end.pid, end.status)

    def _tell_held(self, pid: int) -> None:
        for end in self._fresh.pop(pid, []):
            self._exited(end.pid, end.status)

    def _end(self) -> None:
        self.is_gone = True
        self._loop.remove_reader(self._link)
        self._link.close()
        gone = self._unavailable("is gone")
        self._fail_waiting(gone)
        if not self._warm.done():
            self._warm.set_exception(gone)
            # Nobody may be waiting for it, which is no reason to complain.
            self._warm.exception()
        self._loop.run_in_executor(None, self._process.wait)
        self._gone()

    def _fail_waiting(self, gone: Unavailable) -> None:
        """It reads one request, answers, reads the next: only the first can have been read."""
        waiting = [answer for answer in self._waiting.values() if not answer.done()]
        first_unread = 0 if len(waiting) == 1 else 1
        for place, answer in enumerate(waiting):
            is_unread = self._left_unread and place >= first_unread
            answer.set_exception(_not_sent() if is_unread else gone)

    def _unavailable(self, what: str) -> Unavailable:
        last = last_lines(self._log)
        return Unavailable(
            f"The zygote of this host {what}.", hint=f"Its last lines: {last}" if last else ""
        )


def _not_sent() -> NotSent:
    return NotSent("The zygote of this host is gone.", hint="Try again.")


def last_lines(log: Path) -> str:
    """The end of a log, as one text; "" if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LAST_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-_LAST_LINES:])


def _numbered(request: Fork, ticket: int, names: tuple[str, ...]) -> bytes:
    return Fork(
        ticket=ticket,
        uid=request.uid,
        gid=request.gid,
        groups=request.groups,
        descriptors=names,
    ).encode()


def _start(command: ZygoteCommand, link: socket.socket) -> subprocess.Popen[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    log = os.open(command.log, flags, 0o600)
    try:
        if os.fstat(log).st_size > _MOST_LOG_BYTES:
            os.ftruncate(log, 0)
        return subprocess.Popen(  # noqa: S603 - the interpreter is the admin's
            [*command.arguments, str(link.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(link.fileno(),),
            env=dict(command.environ),
            cwd="/",
            # The terminal's Ctrl-C is for the agent alone.
            start_new_session=True,
            user=command.user,
            group=command.group,
            extra_groups=command.groups if command.user is not None else None,
        )
    except OSError as error:
        raise Unavailable(
            f"The zygote of this host cannot be started: {error.strerror}.",
            hint=f"Check that {command.arguments[0]} exists and may be run.",
        ) from error
    finally:
        os.close(log)
