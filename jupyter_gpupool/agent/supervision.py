"""Keeps a task of the agent going through a fault, and ends the agent when faults do not stop.

Used by `host` for all that runs as long as the agent does. A watcher that ended unseen would leave
a host that looks well and is not.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

_MOST_FAULTS = 5
_WITHIN_S = 60.0
_PAUSE_S = 1.0


async def supervised(
    name: str, work: Callable[[], Awaitable[None]], *, pause_s: float = _PAUSE_S
) -> None:
    """Do work that never ends by itself, again after each fault.

    Raises:
        Exception: The last fault, if there were too many within a minute: the next agent adopts.
    """
    faults: deque[float] = deque(maxlen=_MOST_FAULTS)
    while True:
        try:
            await work()
        except Exception:
            now_s = time.monotonic()
            if len(faults) == _MOST_FAULTS and now_s - faults[0] < _WITHIN_S:
                raise
            faults.append(now_s)
            logger.exception("A fault in %s; it goes on.", name)
        await asyncio.sleep(pause_s)
