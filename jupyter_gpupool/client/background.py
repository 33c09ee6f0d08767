"""One thread with one event loop a process, on which all talk with the pool happens.

The whole client is written once, for asyncio. Blocking callers `run` it from any thread, also from
one whose own loop is running; callers of another loop `bridge` to it. What a coroutine has to say
meanwhile is said in the caller's thread, so that a notebook shows it under the right cell.
"""

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")
Say = Callable[[str], None]
saying: ContextVar[Say | None] = ContextVar("saying", default=None)
"""What a call is told by while it runs: for whoever is deep within it, such as a slow request."""
_GRACE_S = 10.0
"""How long a cancelled call may take to clean up after itself."""
_LOOK_FOR_SIGNALS_EVERY_S = 0.5


class Background:
    """An event loop in a daemon thread, started at first use."""

    def __init__(self) -> None:
        # Reentrant: the garbage collector may come while it is held, and give back through us.
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                self._loop = _start_loop()
            return self._loop

    def run(self, make: Callable[[Say], Coroutine[Any, Any, _T]], tell: Say | None = None) -> _T:
        """Run a coroutine to its end and return its result; `tell` gets what it says.

        An interrupt (Ctrl-C) cancels the coroutine, waits for it to clean up, and goes on.
        """
        call = _Call(make)
        call.start(self.loop, call.mail.put)
        try:
            call.wait(tell or _ignore)
        except BaseException:
            call.cancel(self.loop)
            call.finished.wait(_GRACE_S)
            raise
        return call.result()

    async def bridge(
        self, make: Callable[[Say], Coroutine[Any, Any, _T]], tell: Say | None = None
    ) -> _T:
        """The same for a caller on a loop of its own; cancelling waits for the clean-up too."""
        here = asyncio.get_running_loop()
        call, done = _Call(make), asyncio.Event()
        call.when_finished = lambda: _soon(here, done.set)
        say = tell or _ignore
        call.start(self.loop, lambda text: _soon(here, lambda: say(text)))
        try:
            await done.wait()
        except asyncio.CancelledError:
            call.cancel(self.loop)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await done.wait()
            raise
        return call.result()


class _Call(Generic[_T]):
    """A coroutine on its way on the background loop, seen from another thread."""

    def __init__(self, make: Callable[[Say], Coroutine[Any, Any, _T]]) -> None:
        self.mail: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.finished = threading.Event()
        self.when_finished: Callable[[], None] = _nothing
        self._make = make
        self._task: asyncio.Task[_T] | None = None
        self._cancelled = False

    def start(self, loop: asyncio.AbstractEventLoop, say: Say) -> None:
        loop.call_soon_threadsafe(self._begin, say)

    def cancel(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon_threadsafe(self._stop)

    def wait(self, tell: Say) -> None:
        while (text := self._next_word()) is not None:
            tell(text)

    def _next_word(self) -> str | None:
        while True:
            # A signal that comes right before Python begins to wait does not end the wait, and its
            # handler runs only after it: an interrupt would be lost for as long as nothing is said.
            with contextlib.suppress(queue.Empty):
                return self.mail.get(timeout=_LOOK_FOR_SIGNALS_EVERY_S)

    def result(self) -> _T:
        assert self._task is not None, "asked for before it was finished"
        return self._task.result()

    def _begin(self, say: Say) -> None:
        self._task = asyncio.get_running_loop().create_task(self._live(say))
        self._task.add_done_callback(self._end)
        if self._cancelled:
            self._task.cancel()

    async def _live(self, say: Say) -> _T:
        saying.set(lambda text: self._say_meanwhile(say, text))
        # Made within the task: what `make` raises before it returns is the caller's to see, too.
        return await self._make(say)

    def _say_meanwhile(self, say: Say, text: str) -> None:
        # A task that it began may live on, and has nobody to tell.
        if self._task is not None and not self._task.done():
            say(text)

    def _stop(self) -> None:
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[_T]) -> None:
        if not task.cancelled():
            task.exception()  # marks it as seen: the caller may be gone
        self.finished.set()
        self.when_finished()
        self.mail.put(None)


def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_live, args=(loop,), daemon=True, name="gpupool").start()
    return loop


def _live(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


def _soon(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    # The caller's loop may have been closed while we were busy: nobody is left to be told.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function)


def _ignore(_text: str) -> None:
    """Nobody listens."""


def _nothing() -> None:
    """Nobody waits."""


background = Background()
"""The process's own."""


def _forget_after_fork() -> None:
    # A fork copies no thread: the child starts a loop of its own when it needs one.
    background.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget_after_fork)
