"""Does what may hang for ever, such as opening a file of somebody else's, beside the event loop.

A thread of its own each time, which nobody waits for at the end: those of an executor would be kept
from all other work, and would hold up the agent's end, for as long as a file system hangs.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def in_own_thread(work: Callable[[], _T]) -> asyncio.Future[_T]:
    """Do it; its outcome. Whoever stops waiting leaves the thread to itself."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_T] = loop.create_future()

    def settle(act: Callable[[], None]) -> None:
        # The loop may be over by then.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if outcome.done() else act())

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - it is its caller's
            # A name that outlives this block.
            failure = error
            settle(lambda: outcome.set_exception(failure))
        else:
            settle(lambda: outcome.set_result(result))

    threading.Thread(target=run, daemon=True, name="gpupool may hang").start()
    return outcome
