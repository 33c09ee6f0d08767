"""Runs a process's one coroutine in the loop that distributed expects.

Called by `scheduler` and `worker`. The loop is not closed and no thread is waited for afterwards:
the child ends by `os._exit`, so a thread that still runs a task cannot hold its device.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any


def live_until_ended(life: Coroutine[Any, Any, int]) -> int:
    """Run it to its end.

    Returns:
        Its exit code.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(life)
