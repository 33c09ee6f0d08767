"""The zygote: imports everything once, then forks a scheduler or worker in milliseconds.

Started by the agent as `python -m jupyter_gpupool.runtime.zygote SPARES FD`: how many children to
keep forked ahead, and its end of a socket pair of whole messages. It stays single-threaded and
never reads a secret: a child's launch is a descriptor it passes on. At end-of-file it exits; its
children live on, but for the spares.
"""

import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from jupyter_gpupool.protocol.launch import MOST_DESCRIPTORS, Exited, Fork, Forked, decode

from . import identity, warming
from .spares import Spares

_DASHBOARDS_AFTER_S = 1.0
"""How long it has to be quiet before the dashboards are loaded, for which nobody waits."""
_MOST_BYTES = 256 * 1024
_WITHOUT_DASHBOARDS = "without-dashboards"


def main(argv: list[str]) -> int:
    """Warm up, say so, and fork until the agent hangs up."""
    spares, link, again = int(argv[1]), socket.socket(fileno=int(argv[2])), bool(argv[3:])
    warming.name_process("gpupool-zygote")
    if "HOME" not in os.environ:
        # The agent knows whose process this is; what that user is called is known here.
        identity.take_name(os.geteuid())
    environment = dict(os.environ)
    try:
        warm = warming.warm_up(environment)
        if not again:
            link.send(warm.encode())
        if not Zygote(link, spares, dashboards=not again).serve():
            # The same process, so that the ends of its children are still told.
            argv = [*sys.orig_argv[1:], _WITHOUT_DASHBOARDS]
            os.execve(sys.executable, [sys.executable, *argv], environment)  # noqa: S606 - itself
    except (BrokenPipeError, ConnectionResetError):
        pass
    return 0


class Zygote:
    """One thread, one loop: forks on request, and reports each child that has ended."""

    def __init__(self, link: socket.socket, spares: int, *, dashboards: bool = True) -> None:
        self._link = link
        self._spares = Spares(spares, _fork_off, _live_as_spare)
        due_s = time.monotonic() + _DASHBOARDS_AFTER_S
        self._dashboards_due_s: float | None = due_s if dashboards else None
        self._wake, woken = socket.socketpair()
        for end in (self._wake, woken):
            end.setblocking(False)
        # A handler must exist for the wakeup descriptor to be written to.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        self._woken = woken
        self._selector = selectors.DefaultSelector()
        self._selector.register(link, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def serve(self) -> bool:
        """Answer until the agent hangs up.

        Returns:
            Whether it did; else forking is no longer safe.
        """
        going_on = True
        while going_on:
            ready = {key.fileobj for key, _ in self._selector.select(self._due_in_s())}
            if self._wake in ready:
                self._wake.recv(4096)
            if self._link in ready:
                going_on = self._answer()
            # After the answer, so that a child's end is never told before its beginning.
            self._reap()
            if going_on and not ready and not self._use_quiet():
                return False
        return True

    def _due_in_s(self) -> float | None:
        if self._dashboards_due_s is None:
            return self._spares.due_in_s()
        return max(0.0, self._dashboards_due_s - time.monotonic())

    def _use_quiet(self) -> bool:
        """Do what nobody waits for; spares come last, for they shall share all of it.

        Returns:
            Whether it is still safe to fork.
        """
        if self._dashboards_due_s is None:
            self._spares.make_one()
            return True
        self._dashboards_due_s = None
        if problem := warming.warm_dashboards():
            print(problem, file=sys.stderr, flush=True)  # noqa: T201 - the log is this process's stderr
        return not problem

    def _answer(self) -> bool:
        line, descriptors, _, _ = socket.recv_fds(self._link, _MOST_BYTES, MOST_DESCRIPTORS)
        if self._dashboards_due_s is not None:
            self._dashboards_due_s = time.monotonic() + _DASHBOARDS_AFTER_S
        for descriptor in descriptors:
            # They arrive inheritable: what a worker starts must not hold its device's lock.
            os.set_inheritable(descriptor, False)
        try:
            if not line:
                return False
            request = decode(line)
            if isinstance(request, Fork):
                self._serve(request, line, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _serve(self, request: Fork, line: bytes, descriptors: list[int]) -> None:
        """Have a child, tell the agent of it, and only then let the child go on.

        A child whose pid the agent never learns would run beside the one started in its place.
        """
        if len(request.descriptors) != len(descriptors):
            self._refuse(request, "descriptors were lost on the way")
        elif (spare := self._spares.take()) is not None:
            self._link.send(Forked(ticket=request.ticket, pid=spare.pid).encode())
            spare.hand_over(line, descriptors)
        else:
            try:
                self._fork(request, descriptors)
            except OSError as error:
                self._refuse(request, f"fork failed: {error.strerror}")

    def _fork(self, request: Fork, descriptors: list[int]) -> None:
        given = dict(zip(request.descriptors, descriptors, strict=True))
        held, let_go = os.pipe()
        try:
            pid = _fork_off(lambda: _live(request, given, held))
            self._link.send(Forked(ticket=request.ticket, pid=pid).encode())
            os.write(let_go, b"\n")
        finally:
            os.close(held)
            # Without a byte this is its end: it was told of to nobody.
            os.close(let_go)

    def _refuse(self, request: Fork, problem: str) -> None:
        self._link.send(Forked(ticket=request.ticket, pid=None, problem=problem).encode())

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if not self._spares.is_gone(pid):
                self._link.send(Exited(pid=pid, status=os.waitstatus_to_exitcode(status)).encode())


def _fork_off(life: Callable[[], int]) -> int:
    """Fork; the child lives its life and never returns from here.

    Raises:
        OSError: If this host cannot have another process.
    """
    pid = os.fork()
    if pid == 0:
        _end_after(life)
    return pid


def _end_after(life: Callable[[], int]) -> NoReturn:
    code = 1
    try:
        code = life()
    except BaseException:  # noqa: BLE001 - whatever it was, the child ends here
        traceback.print_exc()
    finally:
        # Neither atexit nor joined threads: what is left in a thread must not hold the process.
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
        os._exit(code)


def _live(request: Fork, descriptors: dict[str, int], held: int) -> int:
    # Imported by `warming`, and not above: numpy must be loaded after its threads are limited.
    from . import child  # noqa: PLC0415

    return child.live(request, descriptors, held=held)


def _live_as_spare(link: socket.socket) -> int:
    from . import spare  # noqa: PLC0415 - as above

    return spare.live(link)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
