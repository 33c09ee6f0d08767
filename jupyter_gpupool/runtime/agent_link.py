"""A child's line to its agent: says what it is and how it does, hears its orders.

Called by `scheduler` and `worker`. The agent may be gone for long or for good: the link then tries
again for ever and never holds the Dask process up. Each connection begins with everything anew, so
a new agent learns all from it.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable

from jupyter_gpupool.protocol.launch import (
    Hello,
    Lively,
    Orders,
    SchedulerState,
    WorkerState,
    decode,
)
from jupyter_gpupool.protocol.socket_path import reachable

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 2.0
_MOST_LINE_BYTES = 4 * 1024 * 1024
_REFUSALS_BEFORE_GIVING_UP = 3

State = SchedulerState | WorkerState
"""What is said whole, and again on each connection."""


class AgentLink:
    """Keeps the agent told. All methods belong to one event loop.

    Args:
        path: The agent's Unix socket.
        hello: Who this is.
        lock_fds: The locks of its devices, handed back with each hello.
        obey: Called with each whole set of orders.
        refused: Called when an agent that is there does not know this process and never did.
    """

    def __init__(
        self,
        path: str,
        hello: Hello,
        *,
        obey: Callable[[Orders], None],
        refused: Callable[[], None],
        lock_fds: tuple[int, ...] = (),
    ) -> None:
        self._path = path
        self._hello = hello
        self._lock_fds = lock_fds
        self._obey = obey
        self._refused = refused
        self._state: State | None = None
        self._lively: Lively | None = None
        self._changed = asyncio.Event()
        self._told = asyncio.Event()
        self._was_admitted = False
        self._refusals = 0

    def tell(self, state: State) -> None:
        """Let the agent know, now or as soon as there is one. Only the last state counts."""
        if state != self._state:
            self._state = state
            self._changed.set()
            self._told.clear()

    def mention(self, lively: Lively) -> None:
        """Let the agent know if it listens; only the last one counts."""
        self._lively = lively
        self._changed.set()

    async def told(self, deadline_s: float) -> None:
        """Wait until the last state has left for the agent, but no longer than that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline_s):
                await self._told.wait()

    async def run(self) -> None:
        """Connect, talk, connect again, for as long as the process lives."""
        pause_s = _FIRST_PAUSE_S
        while True:
            heard = False
            # A line that is no line of the protocol ends the connection as an error does.
            with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
                heard = await self._talk()
            self._note_refusal(heard=heard)
            pause_s = _FIRST_PAUSE_S if heard else min(pause_s * 2, _LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)

    def _note_refusal(self, *, heard: bool) -> None:
        self._was_admitted = self._was_admitted or heard
        if not self._was_admitted and self._refusals >= _REFUSALS_BEFORE_GIVING_UP:
            self._refused()

    async def _talk(self) -> bool:
        """One connection, to its end; whether the agent ever spoke on it."""
        connection = await _connect(self._path)
        try:
            self._greet(connection)
            reader, writer = await asyncio.open_unix_connection(
                sock=connection, limit=_MOST_LINE_BYTES
            )
        except BaseException:
            connection.close()
            raise
        telling = asyncio.create_task(self._keep_telling(writer))
        heard = False
        try:
            while line := await reader.readline():
                orders = decode(line)
                heard = self._was_admitted = True
                if isinstance(orders, Orders):
                    self._obey(orders)
        except (OSError, ValueError):
            return heard
        finally:
            telling.cancel()
            writer.close()
        # The agent took the connection and hung up without a word: it does not know this process.
        self._refusals += not heard
        return heard

    def _greet(self, connection: socket.socket) -> None:
        socket.send_fds(connection, [self._hello.encode()], self._lock_fds)

    async def _keep_telling(self, writer: asyncio.StreamWriter) -> None:
        self._changed.set()
        said: State | None = None
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._state is not None and self._state is not said:
                said = self._state
                writer.write(said.encode())
            if self._lively is not None:
                writer.write(self._lively.encode())
                self._lively = None
            # An agent that is stopped holds up this task, and nothing else.
            await writer.drain()
            if said is self._state:
                self._told.set()


async def _connect(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        with reachable(path) as short:
            await asyncio.get_running_loop().sock_connect(connection, short)
    except BaseException:
        connection.close()
        raise
    return connection
