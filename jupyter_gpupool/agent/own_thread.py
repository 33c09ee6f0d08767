"""Does what may hang for ever, such as opening a file of somebody else's, beside the event loop.

A thread of its own each time, which nobody waits for at the end: those of an executor would be kept
from all other work, and would hold up the agent's end, for as long as a file system hangs.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def in_own_thread(
    work: Callable[[], _T], *, undo: Callable[[_T], object] | None = None
) -> asyncio.Future[_T]:
    """Do it; its outcome. Whoever stops waiting leaves the thread to itself.

    Args:
        work: What may hang.
        undo: Done in the thread to a result that nobody can take any more, for the loop is over.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_T] = loop.create_future()

    def settle(act: Callable[[], None]) -> bool:
        try:
            loop.call_soon_threadsafe(lambda: None if outcome.done() else act())
        except RuntimeError:
            return False  # the loop is over
        return True

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - it is its caller's
            # A name that outlives this block.
            failure = error
            settle(lambda: outcome.set_exception(failure))
        else:
            if not settle(lambda: outcome.set_result(result)) and undo is not None:
                undo(result)

    threading.Thread(target=run, daemon=True, name="gpupool may hang").start()
    return outcome
