"""One connection of a child: lines in, with descriptors beside them; orders out. Never blocks.

Called by `child_socket`, which decides who is admitted. asyncio's streams drop descriptors that
come along, so this reads the socket itself.
"""

import asyncio
import os
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from jupyter_gpupool.protocol.launch import MOST_LOCKS, Hello, Orders

from .allowance import Allowance

_READ_BYTES = 64 * 1024
_MOST_DESCRIPTORS = MOST_LOCKS
_STRANGERS_LINE_BYTES = 64 * 1024
_MEMBERS_LINE_BYTES = 4 * 1024 * 1024
"""A scheduler's state names each of its workers."""
_MOST_LINES = 64
_LINES_WITHIN_S = 0.1
"""A child that says more waits: what it says is whole each time, so nothing gets old by it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, as the kernel says."""

    pid: int
    uid: int


class ChildConnection:
    """A child, or somebody who says so.

    Args:
        heard: Called with each line; raises ValueError to have the connection closed.
        closed: Called once, when it is over.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        heard: Callable[["ChildConnection", bytes], None],
        closed: Callable[["ChildConnection"], None],
    ) -> None:
        self._socket = connection
        self._heard = heard
        self._closed = closed
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._descriptors: list[int] = []
        self._unsent = b""
        self._next: Orders | None = None
        self._is_open = True
        self._lines = Allowance(most=_MOST_LINES, within_s=_LINES_WITHIN_S)
        self._resume: asyncio.TimerHandle | None = None
        self.hello: Hello | None = None
        self.peer = _peer_of(connection)
        connection.setblocking(False)
        self._loop.add_reader(connection, self._read)

    def take_descriptors(self) -> tuple[int, ...]:
        """The descriptors that came along, in their order. The caller closes them."""
        taken, self._descriptors = tuple(self._descriptors), []
        return taken

    def order(self, orders: Orders) -> None:
        """Send orders; those that could not be sent yet are replaced by them."""
        self._next = orders
        self._write()

    def close(self) -> None:
        """Hang up."""
        if not self._is_open:
            return
        self._is_open = False
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._drop_descriptors()
        self._closed(self)

    def _read(self) -> None:
        try:
            text, descriptors, flags, _ = socket.recv_fds(
                self._socket, _READ_BYTES, _MOST_DESCRIPTORS
            )
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self._descriptors.extend(descriptors)
        self._buffer += text
        is_sound = len(self._descriptors) <= _MOST_DESCRIPTORS and not flags & socket.MSG_CTRUNC
        if not text or not is_sound or not self._pass_lines_on():
            self.close()

    def _pause(self, now_s: float) -> None:
        self._loop.remove_reader(self._socket)
        self._resume = self._loop.call_later(self._lines.pause_s(now_s), self._read_again)

    def _read_again(self) -> None:
        self._resume = None
        if not self._pass_lines_on():
            self.close()
        elif self._is_open and self._resume is None:
            self._loop.add_reader(self._socket, self._read)

    def _pass_lines_on(self) -> bool:
        """Hand over whole lines; whether the connection is still worth keeping."""
        while self._is_open and (end := self._buffer.find(b"\n")) >= 0:
            now_s = time.monotonic()
            if not self._lines.take(now_s):
                self._pause(now_s)
                return True
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            if len(line) > self._most_bytes():
                return False
            try:
                self._heard(self, line)
            except ValueError:
                return False
            self._drop_descriptors()
        return len(self._buffer) <= self._most_bytes()

    def _most_bytes(self) -> int:
        return _STRANGERS_LINE_BYTES if self.hello is None else _MEMBERS_LINE_BYTES

    def _write(self) -> None:
        while self._is_open and (self._unsent or self._next is not None):
            if not self._unsent and self._next is not None:
                self._unsent, self._next = self._next.encode(), None
            try:
                sent = self._socket.send(self._unsent)
            except BlockingIOError:
                self._loop.add_writer(self._socket, self._write)
                return
            except OSError:
                self._loop.call_soon(self.close)
                return
            self._unsent = self._unsent[sent:]
        if self._is_open:
            self._loop.remove_writer(self._socket)

    def _drop_descriptors(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def _peer_of(connection: socket.socket) -> Peer:
    size = struct.calcsize("3i")
    pid, uid, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return Peer(pid, uid)
