"""Watches this server's kernels, and says which of them have just changed.

Called by `app`; `reporting` sends what is seen to the pool. jupyter_server's own `last_activity`
counts Lab's polls too, so every kernel's broadcast channel is listened to once more here, along
with the server's own listening: the same calls begin and end it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from jupyter_client.session import Session

from .activity import Cause, KernelSample, Said, Work, after, restarted
from .asking import ask_until_heard

_TELLING = (b'"status"', b'"execute_input"')
"""Only headers that hold one of these are read: output can be large, and much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A kernel of this server.

    Attributes:
        work: What it does, as far as it was heard.
        process: The process that spoke last, as its messages name it; "" until one was heard:
            what it does is not known.
        former: The process before a restart, whose last words may still arrive.
        is_dead: It was shut down, or died too often.
    """

    work: Work
    process: str = ""
    former: str = ""
    is_dead: bool = False


class KernelWatch:
    """The kernels of one mapping kernel manager.

    Attributes:
        seen: By Jupyter's id; a dead one until `forget`.
    """

    def __init__(self, manager: Any, changed: Callable[[], None]) -> None:
        self.seen: dict[str, Seen] = {}
        self._manager = manager
        self._changed = changed
        self._streams: dict[str, Any] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> None:
        """Watch every kernel that the manager watches; those behind a gateway are none of ours."""
        start = getattr(self._manager, "start_watching_activity", None)
        stop = getattr(self._manager, "stop_watching_activity", None)
        if start is None or stop is None:
            return
        restart = self._manager.restart_kernel

        def start_both(kernel_id: str) -> None:
            start(kernel_id)
            self._listen(kernel_id)

        def stop_both(kernel_id: str) -> None:
            stop(kernel_id)
            self._died(kernel_id)

        async def restart_both(kernel_id: str, *args: Any, **more: Any) -> Any:
            self._restarts(kernel_id)
            try:
                return await restart(kernel_id, *args, **more)
            finally:
                self._ask(kernel_id)

        self._manager.restart_kernel = restart_both
        self._manager.start_watching_activity = start_both
        self._manager.stop_watching_activity = stop_both

    def end(self) -> None:
        """Take all kernels for dead: a server that ends shuts them down next."""
        for kernel_id in tuple(self._streams):
            self._died(kernel_id)

    def forget(self, kernel_id: str) -> None:
        """Drop a dead kernel, once that was told."""
        if (seen := self.seen.get(kernel_id)) is not None and seen.is_dead:
            del self.seen[kernel_id]

    def _listen(self, kernel_id: str) -> None:
        kernel = self._manager.get_kernel(kernel_id)
        session = Session(config=kernel.session.config, key=kernel.session.key)
        self._close(kernel_id)
        stream = self._streams[kernel_id] = kernel.connect_iopub()
        stream.on_recv(lambda parts: self._hear(kernel_id, session, parts))
        self.seen[kernel_id] = Seen(work=restarted(datetime.now(UTC)))
        self._changed()
        self._manager.add_restart_callback(kernel_id, lambda: self._died(kernel_id), "dead")
        self._manager.add_restart_callback(kernel_id, lambda: self._came_back(kernel_id), "restart")
        self._ask(kernel_id)

    def _came_back(self, kernel_id: str) -> None:
        self._restarts(kernel_id)
        self._ask(kernel_id)

    def _restarts(self, kernel_id: str) -> None:
        """What it was doing is over, and what it does is not known until it is heard again."""
        seen = self.seen.get(kernel_id)
        if seen is None or seen.is_dead:
            return
        former = seen.process or seen.former
        self.seen[kernel_id] = Seen(work=restarted(datetime.now(UTC)), former=former)
        self._stop_asking(kernel_id)
        self._changed()

    def _ask(self, kernel_id: str) -> None:
        self._stop_asking(kernel_id)
        if kernel_id not in self._streams:
            return
        kernel = self._manager.get_kernel(kernel_id)
        asking = ask_until_heard(kernel, lambda: bool(self.seen[kernel_id].process))
        self._asking[kernel_id] = asyncio.get_running_loop().create_task(asking)

    def _stop_asking(self, kernel_id: str) -> None:
        if (asking := self._asking.pop(kernel_id, None)) is not None:
            asking.cancel()

    def _hear(self, kernel_id: str, session: Session, parts: list[Any]) -> None:
        message = _told(session, parts)
        if message is None or kernel_id not in self.seen:
            return
        before = self.seen[kernel_id]
        if message["header"]["session"] == before.former:
            return
        now = self.seen[kernel_id] = _after(before, message)
        if (before.work.is_busy, before.process) != (now.work.is_busy, now.process):
            self._changed()

    def _died(self, kernel_id: str) -> None:
        self._close(kernel_id)
        if kernel_id in self.seen:
            self.seen[kernel_id] = replace(self.seen[kernel_id], is_dead=True)
            self._changed()

    def _close(self, kernel_id: str) -> None:
        self._stop_asking(kernel_id)
        stream = self._streams.pop(kernel_id, None)
        if stream is not None and not stream.closed():
            stream.close()


def _told(session: Session, parts: list[Any]) -> dict[str, Any] | None:
    """A message, or None if it is of no kind that matters."""
    _, frames = session.feed_identities(parts)
    header = frames[1]
    if not isinstance(header, bytes) or not any(word in header for word in _TELLING):
        return None
    return session.deserialize(frames)


def _after(seen: Seen, message: dict[str, Any]) -> Seen:
    """What is known of a kernel that has said this."""
    at, process = datetime.now(UTC), message["header"]["session"]
    # Each process names itself anew: that is how a restart shows, whoever had it restarted. What
    # the old one was doing is over.
    is_new = seen.process not in ("", process)
    work = restarted(at) if is_new else seen.work
    sample = _sample(message, at)
    return replace(seen, work=after(work, sample) if sample else work, process=process)


def _sample(message: dict[str, Any], at: datetime) -> KernelSample | None:
    parent = message.get("parent_header") or {}
    said = _said(message)
    if said is None or "msg_id" not in parent:
        return None
    kinds = (Cause.CODE, Cause.WIDGET)
    cause = next((c for c in kinds if c == parent.get("msg_type")), Cause.OTHER)
    return KernelSample(at, said, cause, parent["msg_id"])


def _said(message: dict[str, Any]) -> Said | None:
    if message["msg_type"] == "execute_input":
        return Said.SHOWN
    states = {"busy": Said.BUSY, "idle": Said.IDLE}
    return states.get(message["content"].get("execution_state", ""))
