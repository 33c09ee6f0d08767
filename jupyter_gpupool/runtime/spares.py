"""The zygote's spares: children forked ahead, so that a claim finds its processes half started.

Called by `zygote`. A spare is taken for a request and replaced some time later, so that making the
next one does not slow down the claim that took it.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

READY = b"\n"
"""What a spare says once it has rehearsed."""
_REPLACED_AFTER_S = 2.0
_MOST_DEATHS = 3
_STOPPED = ("T", "t")
"""A process's state in /proc when a signal or a debugger holds it."""
_DEAD = ("Z", "X")
"""Its state when it has ended and is still to be reaped."""


@dataclass(slots=True)
class Spare:
    """A child that waits to be told who it is."""

    pid: int
    link: socket.socket
    is_ready: bool = False
    is_given_up: bool = False
    """It was sent SIGKILL, and may look awake until that has taken hold."""

    def looks_ready(self) -> bool:
        """Whether it has rehearsed."""
        if not self.is_ready:
            try:
                self.is_ready = self.link.recv(1, socket.MSG_DONTWAIT) == READY
            except OSError:
                return False
        return self.is_ready

    def is_awake(self) -> bool:
        """Whether it would hear a request; one that was stopped is ended, to be replaced."""
        if self.is_given_up:
            return False
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state in _STOPPED:
            os.kill(self.pid, signal.SIGKILL)
            self.is_given_up = True
        return state not in _STOPPED + _DEAD

    def hand_over(self, request: bytes, descriptors: Sequence[int]) -> None:
        """Tell it who it is. If it has died meanwhile, its end is told like any child's."""
        try:
            socket.send_fds(self.link, [request], descriptors)
        except OSError:
            return
        finally:
            self.link.close()


class Spares:
    """Keeps some spares ready.

    Args:
        count: How many; 0 for none.
        fork: Forks; in the child it calls what it is given and never returns.
    """

    def __init__(
        self,
        count: int,
        fork: Callable[[Callable[[], int]], int],
        live: Callable[[socket.socket], int],
    ) -> None:
        self._count = count
        self._fork = fork
        self._live = live
        self._waiting: dict[int, Spare] = {}
        self._deaths = 0
        self._due_s = time.monotonic()

    def take(self) -> Spare | None:
        """A spare that is ready, or None. Either way the next ones are made later."""
        self._due_s = time.monotonic() + _REPLACED_AFTER_S
        for spare in self._waiting.values():
            if spare.looks_ready() and spare.is_awake():
                return self._waiting.pop(spare.pid)
        return None

    def due_in_s(self) -> float | None:
        """When `make_one` has something to do; None if never."""
        if len(self._waiting) >= self._count:
            return None
        return max(0.0, self._due_s - time.monotonic())

    def make_one(self) -> None:
        """Make a spare if one is missing and it is time."""
        if self.due_in_s() != 0.0:
            return
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError:
            self._due_s = time.monotonic() + _REPLACED_AFTER_S
            return
        with theirs:
            try:
                pid = self._fork(lambda: self._live(theirs))
            except OSError:
                ours.close()
                self._due_s = time.monotonic() + _REPLACED_AFTER_S
                return
        self._waiting[pid] = Spare(pid, ours)

    def is_gone(self, pid: int) -> bool:
        """Whether this child was a spare of ours, known to nobody; it is then forgotten."""
        spare = self._waiting.pop(pid, None)
        if spare is None:
            return False
        if not spare.looks_ready():
            self._deaths += 1
        spare.link.close()
        self._due_s = time.monotonic() + _REPLACED_AFTER_S
        if self._deaths >= _MOST_DEATHS:
            # Something here does not let them rehearse; claims start without them.
            self._count = 0
        return True
