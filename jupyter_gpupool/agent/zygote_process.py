"""One zygote as the agent sees it: a process, a socket pair, and what travels on it.

Called by `zygotes`, which decides whose zygote it is and when another one is needed.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.units import format_duration
from jupyter_gpupool.protocol.launch import (
    Exited,
    Fork,
    Forked,
    Launch,
    Line,
    Warm,
    lock_names,
)

from .hearsay import Nonsense, hear, may_be_of
from .launch_file import launch_file
from .procfs import read_row
from .zygote_start import Started

logger = logging.getLogger(__name__)

_MOST_BYTES = 256 * 1024
_DIES_WITHIN_S = 5.0
_LOOK_EVERY_S = 1.0
"""A killed zygote hangs up when the kernel has taken it apart."""


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
        started: Started,
        *,
        exited: Callable[[int, int], None],
        gone: Callable[[], None],
    ) -> None:
        self._exited = exited
        self._gone = gone
        self._tickets = itertools.count(1)
        self._unanswered: set[int] = set()
        self._waiting: dict[int, asyncio.Future[Forked]] = {}
        self._fresh: dict[int, list[Exited]] = {}
        self._loop = asyncio.get_running_loop()
        self._warm: asyncio.Future[Warm] = self._loop.create_future()
        self._ended = asyncio.Event()
        self._left_unread = False
        self.is_gone = False
        self.children: set[int] = set()
        """Those it forked that live: when it goes, nobody tells how they end."""
        self._process, self._link, self._log = started.process, started.link, started.log
        self._pidfd, self._user = started.pidfd, started.user
        self._link.setblocking(False)
        self._loop.add_reader(self._link, self._hear)
        self._loop.add_reader(self._pidfd, self._reap)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def is_used(self) -> bool:
        """Whether a child of its lives, or is asked for."""
        return bool(self.children or self._waiting)

    async def warm(self, deadline_s: float) -> Warm:
        """Wait until it can fork.

        Raises:
            Unavailable: If it died before, or took too long.
        """
        waited_s = 0.0
        while waited_s < deadline_s and not self._is_stopped(waited_s):
            await asyncio.wait([self._warm], timeout=_LOOK_EVERY_S)
            if self._warm.done():
                return self._warm.result()
            waited_s += _LOOK_EVERY_S
        self.kill()
        raise self._unavailable(f"did not get warm within {format_duration(waited_s)}")

    async def fork(
        self,
        request: Fork,
        launch: Launch,
        *,
        log_fd: int,
        lock_fds: tuple[int, ...],
        deadline_s: float,
    ) -> int:
        """Have a child forked.

        Raises:
            NotSent: If the zygote was gone already.
            Unavailable: If there is no child: the zygote could not fork, died or hangs. A child
                it may have forked unheard ends by itself, for it waits for its pid to be told.
        """
        ticket = next(self._tickets)
        answer: asyncio.Future[Forked] = self._loop.create_future()
        self._waiting[ticket] = answer
        self._unanswered.add(ticket)
        try:
            with ExitStack() as stack:
                given = {"launch": stack.enter_context(launch_file(launch)), "log": log_fd}
                given |= dict(zip(lock_names(len(lock_fds)), lock_fds, strict=True))
                await self._send(_numbered(request, ticket, tuple(given)), tuple(given.values()))
            forked = await self._answered(answer, deadline_s)
        except asyncio.CancelledError:
            self._disown(answer)
            raise
        finally:
            self._waiting.pop(ticket, None)
        if forked.pid is None:
            raise self._unavailable(f"could not start a process: {forked.problem}")
        self._loop.call_soon(self._tell_held, forked.pid)
        return forked.pid

    async def _answered(self, answer: asyncio.Future[Forked], deadline_s: float) -> Forked:
        silent_s = 0.0
        while silent_s < deadline_s and not self._is_stopped(silent_s):
            await asyncio.wait([answer], timeout=_LOOK_EVERY_S)
            if answer.done():
                return answer.result()
            silent_s += _LOOK_EVERY_S
        # Its answer may be on the way: all it said is read before it counts as silent.
        self._process.kill()
        await asyncio.wait([answer], timeout=_DIES_WITHIN_S)
        if not self.is_gone:
            self.hang_up()
        if answer.done() and answer.exception() is None:
            return answer.result()
        raise self._unavailable(f"did not answer within {format_duration(silent_s)}")

    def _is_stopped(self, silent_s: float) -> bool:
        """Whether somebody has stopped it, so that more patience is no use."""
        row = read_row(self.pid) if silent_s else None
        return row is not None and row.is_stopped

    def _disown(self, answer: asyncio.Future[Forked]) -> None:
        """Nobody takes this answer: end the child it tells of, now or when it comes."""
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            pid = answer.result().pid
            if pid is not None:
                self._kill_child(pid)
                self._loop.call_soon(self._tell_held, pid)

    def hang_up(self) -> None:
        """Let it end by itself; its children live on."""
        if not self.is_gone:
            self._end()

    def kill(self) -> None:
        """End it at once, even one that is stopped; its children live on."""
        self._process.kill()
        self.hang_up()

    async def ended(self, deadline_s: float) -> None:
        """Wait until its process is gone, but no longer than that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                await self._ended.wait()

    def _reap(self) -> None:
        if self._process.poll() is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._ended.set()

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
        if line:
            self._take(line)
        else:
            self._end()

    def _take(self, line: bytes) -> None:
        try:
            self._believe(hear(line, user=self._user))
        except Nonsense as nonsense:
            logger.warning("Zygote %d is ended, for %s.", self.pid, nonsense)
            self.kill()

    def _believe(self, message: Line) -> None:
        if isinstance(message, Forked):
            self._take_answer(message)
        elif isinstance(message, Exited):
            self._take_end(message)
        elif isinstance(message, Warm) and not self._warm.done():
            self._warm.set_result(message)
        else:
            raise Nonsense("it says what only others have to say")

    def _take_answer(self, forked: Forked) -> None:
        if forked.ticket not in self._unanswered:
            raise Nonsense("it answers what nobody asked")
        self._unanswered.discard(forked.ticket)
        answer = self._waiting.get(forked.ticket)
        if forked.pid is not None:
            self.children.add(forked.pid)
        if answer is not None and not answer.done():
            if forked.pid is not None:
                self._fresh[forked.pid] = []
            answer.set_result(forked)
        elif forked.pid is not None:
            # Whoever asked for it has gone: nobody would ever look after this process.
            self._kill_child(forked.pid)

    def _kill_child(self, pid: int) -> None:
        # One whose end was told is reaped, and its pid may be another's by now.
        if pid in self.children and may_be_of(pid, self._user):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _take_end(self, end: Exited) -> None:
        if end.pid not in self.children:
            # Nobody's; or another zygote's, which alone knows how it ended.
            return
        self.children.discard(end.pid)
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
        self._take_what_is_left()
        self._link.close()
        gone = self._unavailable("is gone")
        self._fail_waiting(gone)
        if not self._warm.done():
            self._warm.set_exception(gone)
            # Nobody may be waiting for it, which is no reason to complain.
            self._warm.exception()
        self._gone()

    def _take_what_is_left(self) -> None:
        """What it said before the end counts: a child that was told of has been let go."""
        with contextlib.suppress(OSError):
            # Nothing more is let in, or one that never stops talking would be read for ever.
            self._link.shutdown(socket.SHUT_RD)
            while line := self._link.recv(_MOST_BYTES):
                self._take(line)

    def _fail_waiting(self, gone: Unavailable) -> None:
        """It reads one request, answers, reads the next: only the first can have been read."""
        waiting = [answer for answer in self._waiting.values() if not answer.done()]
        first_unread = 0 if len(waiting) == 1 else 1
        for place, answer in enumerate(waiting):
            is_unread = self._left_unread and place >= first_unread
            answer.set_exception(_not_sent() if is_unread else gone)

    def _unavailable(self, what: str) -> Unavailable:
        last = self._log.last_lines()
        return Unavailable(
            f"The zygote of this host {what}.", hint=f"Its last lines: {last}" if last else ""
        )


def _not_sent() -> NotSent:
    return NotSent("The zygote of this host is gone.", hint="Try again.")


def _numbered(request: Fork, ticket: int, names: tuple[str, ...]) -> bytes:
    return Fork(
        ticket=ticket,
        uid=request.uid,
        gid=request.gid,
        groups=request.groups,
        descriptors=names,
    ).encode()
