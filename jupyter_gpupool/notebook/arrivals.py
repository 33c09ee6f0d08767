"""Lets a caller wait until enough workers are registered, told by the scheduler, not by asking.

Used by `cluster`, on its loop.
"""

import asyncio
from collections.abc import Callable


class Arrivals:
    """Wakes those who wait whenever the workers of a cluster have changed."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._telling: asyncio.Future[None] | None = None

    def tell(self) -> None:
        """Something has changed; on the loop."""
        self._telling = asyncio.ensure_future(self._tell())

    async def wait_until(self, is_so: Callable[[], bool], timeout_s: float | None) -> bool:
        """Whether it became so in time."""
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(is_so)
        except TimeoutError:
            return False
        return True

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
