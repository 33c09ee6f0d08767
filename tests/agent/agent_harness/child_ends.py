"""Both ends of the agent's socket: whoever owns it, and a child that speaks bytes."""

import asyncio
import contextlib

from jupyter_gpupool.agent.child_socket import ChildSocket
from jupyter_gpupool.protocol.activity import Activity
from jupyter_gpupool.protocol.keeping import Keeping, KeepPhase, Unkept, UnkeptReason, Wish
from jupyter_gpupool.protocol.launch import (
    Hello,
    Role,
    SchedulerState,
    decode,
)

DEADLINE_S = 10.0
WORKER = Hello(role=Role.WORKER, claim_id="claim", lease_id="lease")
SCHEDULER = Hello(role=Role.SCHEDULER, claim_id="claim", lease_id="")
LISTENS = SchedulerState(address="tls://h:1", dashboard_port=None, workers=())
BUSY = Activity(processing=3, begun=70_000, clients=1, quiet_s=0.5)
REFUSED = Keeping(
    phase=KeepPhase.REFUSED,
    wish=Wish.HIBERNATED,
    surveyed=True,
    result_bytes=2**40,
    unkept=(Unkept(key="counter-1", reason=UnkeptReason.ACTOR),),
    unkept_count=1,
)


class SocketOwner:
    """Whoever owns the socket: notes what it is told."""

    def __init__(self, path) -> None:
        self.said: list[tuple[str, object]] = []
        self.asked: list[tuple[int, int]] = []
        self.is_admitting = True
        self.locks: list[int] = []
        self._changed = asyncio.Event()
        self.socket = ChildSocket(
            path,
            admit=self._admit,
            heard=lambda hello, state: self._note("heard", state),
            locks_returned=lambda hello, fds: self._note("locks", fds),
            lively=lambda hello, activity: self._note("lively", activity),
        )

    def _admit(self, hello, pid, uid):
        self.asked.append((pid, uid))
        return self.is_admitting

    def _note(self, what, value):
        self.said.append((what, value))
        self._changed.set()

    def all(self, what):
        return [value for kind, value in self.said if kind == what]

    async def until(self, holds):
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def next(self, what):
        async with asyncio.timeout(DEADLINE_S):
            while not (found := [value for kind, value in self.said if kind == what]):
                self._changed.clear()
                await self._changed.wait()
        return found[-1]


class Child:
    """The other end, speaking bytes."""

    def __init__(self, reader, writer) -> None:
        self.reader, self.writer = reader, writer

    def say(self, *lines) -> None:
        self.writer.write(b"".join(x if isinstance(x, bytes) else x.encode() for x in lines))

    async def hear(self):
        async with asyncio.timeout(DEADLINE_S):
            line = await self.reader.readline()
        return decode(line) if line else None

    async def ends(self) -> bool:
        """Whatever it hears before, its connection ends."""
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(DEADLINE_S):
                await self.reader.read()
        return True

    async def is_turned_away(self) -> bool:
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True
