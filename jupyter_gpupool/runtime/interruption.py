"""Lets an order end what was begun for an earlier one, wherever it waits.

Used by `hibernation`: a worker that is stopped answers no question, for as long as it likes.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class CalledOff(Exception):
    """It is not wanted any more."""


class Interruption:
    """Called off once, whatever is under way ends; what begins afterwards does not."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def call_off(self) -> None:
        """End what is under way."""
        self._event.set()
        self._event = asyncio.Event()

    async def unless(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do this work.

        Raises:
            CalledOff: If it was called off meanwhile; nothing of it goes on here.
        """
        calling_off = asyncio.create_task(self._event.wait())
        working = asyncio.create_task(work)
        try:
            await asyncio.wait({calling_off, working}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise CalledOff
            return working.result()
        finally:
            calling_off.cancel()
            working.cancel()
            await asyncio.wait({calling_off, working})
