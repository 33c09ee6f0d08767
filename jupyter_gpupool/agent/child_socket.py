"""The agent's Unix socket, where its schedulers and workers report and hear their orders.

Called by the agent. Any local user can reach a root agent's socket, so who speaks is known by the
kernel's word on pid and uid, and strangers get little room and little time.
"""

import asyncio
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.activity import Activity
from jupyter_gpupool.protocol.launch import (
    Hello,
    Lively,
    Orders,
    Role,
    SchedulerState,
    WorkerState,
)
from jupyter_gpupool.protocol.socket_path import reachable

from .allowance import Allowance
from .child_connection import ChildConnection
from .child_lines import read_line

logger = logging.getLogger(__name__)

_SAY_HELLO_WITHIN_S = 5.0
_MOST_STRANGERS_A_USER = 64
_BACKLOG = 256
_ACCEPT_AGAIN_S = 0.1

Key = tuple[Role, str, str]


class ChildSocket:
    """Listens to children.

    Args:
        path: Where; its folder exists. An old socket there is replaced.
        admit: Whether that hello may come from that (pid, uid).
        heard: Called with each state of an admitted child.
        lively: Called with what goes on in an admitted scheduler, each second.
        locks_returned: Called with the locks of a worker's devices, in their order: descriptors
            that are then the callee's.
    """

    def __init__(
        self,
        path: Path,
        *,
        admit: Callable[[Hello, int, int], bool],
        heard: Callable[[Hello, SchedulerState | WorkerState], None],
        locks_returned: Callable[[Hello, Sequence[int]], None],
        lively: Callable[[Hello, Activity], None] = lambda _, __: None,
    ) -> None:
        self._path = path
        self._admit = admit
        self._heard = heard
        self._locks_returned = locks_returned
        self._lively = lively
        self._orders: dict[Key, Orders] = {}
        self._members: dict[Key, ChildConnection] = {}
        self._strangers: dict[ChildConnection, asyncio.TimerHandle] = {}
        self._listener: socket.socket | None = None
        # Any local user can have itself turned away, as fast as it likes.
        self._complaints = Allowance(most=10, within_s=60.0)

    async def start(self) -> None:
        """Listen.

        Raises:
            Unavailable: If the socket cannot be made there.
        """
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _bind(listener, self._path)
        except OSError as error:
            listener.close()
            raise Unavailable(
                f"The agent cannot listen on {self._path}: {error.strerror or error}.",
                hint="Check that its state folder can be written.",
            ) from error
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener, self._accept)

    async def close(self) -> None:
        """Hang up on all; they try again until there is a new agent."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for connection in (*self._members.values(), *self._strangers):
            connection.close()

    def order(self, role: Role, claim_id: str, lease_id: str, orders: Orders) -> None:
        """Give a child its orders, now and on each of its connections to come."""
        key = (role, claim_id, lease_id)
        if self._orders.get(key) == orders:
            return
        self._orders[key] = orders
        if key in self._members:
            self._members[key].order(orders)

    def forget(self, role: Role, claim_id: str, lease_id: str) -> None:
        """Drop the orders of a child that is gone for good."""
        self._orders.pop((role, claim_id, lease_id), None)

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:
            # No descriptor is left, most likely: the connection waits, and would wake us at once.
            self._pause_accepting()
            return
        connection = ChildConnection(accepted, heard=self._take_line, closed=self._take_close)
        crowd = Counter(stranger.peer.uid for stranger in self._strangers)
        self._strangers[connection] = asyncio.get_running_loop().call_later(
            _SAY_HELLO_WITHIN_S, connection.close
        )
        if crowd[connection.peer.uid] >= _MOST_STRANGERS_A_USER:
            connection.close()

    def _pause_accepting(self) -> None:
        loop, listener = asyncio.get_running_loop(), self._listener
        assert listener is not None
        loop.remove_reader(listener)
        loop.call_later(_ACCEPT_AGAIN_S, self._accept_again, listener)

    def _accept_again(self, listener: socket.socket) -> None:
        if self._listener is listener:
            asyncio.get_running_loop().add_reader(listener, self._accept)

    def _take_line(self, connection: ChildConnection, line: bytes) -> None:
        message = read_line(line)
        if isinstance(message, Hello):
            self._welcome(connection, message)
        elif connection.hello is None:
            raise ValueError("no hello first")
        elif isinstance(message, WorkerState) is (connection.hello.role is Role.SCHEDULER):
            raise ValueError("another role's state")
        elif isinstance(message, Lively):
            self._lively(connection.hello, message.activity)
        else:
            self._heard(connection.hello, message)

    def _welcome(self, connection: ChildConnection, hello: Hello) -> None:
        peer = connection.peer
        if connection.hello is not None or not self._admit(hello, peer.pid, peer.uid):
            if self._complaints.take(time.monotonic()):
                logger.warning("Turned process %d of user %d away.", peer.pid, peer.uid)
            raise ValueError("not admitted")
        self._strangers.pop(connection).cancel()
        connection.hello = hello
        key = _key(hello)
        older = self._members.pop(key, None)
        self._members[key] = connection
        if older is not None:
            older.close()
        descriptors = connection.take_descriptors()
        if descriptors:
            self._locks_returned(hello, descriptors)
        # Always said, even when there is nothing to order: it tells the child that it is known.
        connection.order(self._orders.get(key, Orders()))

    def _take_close(self, connection: ChildConnection) -> None:
        timer = self._strangers.pop(connection, None)
        if timer is not None:
            timer.cancel()
        hello = connection.hello
        if hello is not None and self._members.get(_key(hello)) is connection:
            del self._members[_key(hello)]


def _key(hello: Hello) -> Key:
    return hello.role, hello.claim_id, hello.lease_id


def _bind(listener: socket.socket, path: Path) -> None:
    path.unlink(missing_ok=True)
    with reachable(str(path)) as short:
        listener.bind(short)
    # Children of all users connect to a root agent; the folder's mode keeps others from listing.
    path.chmod(0o666 if os.geteuid() == 0 else 0o600)
