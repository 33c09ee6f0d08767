"""The process that a private pool belongs to: when it ends, however it does, the pool is told.

Called by `serving`. A pool of a demo or of tests is ended by whoever started it; one that is
killed cannot, and what it claimed would hold the pool up for as long as claims may live.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def watched(pid: int, tell: Callable[[], object]) -> Iterator[None]:
    """Call `tell` in the running loop once this process has ended, also if it has already."""
    loop = asyncio.get_running_loop()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        loop.call_soon(tell)
        yield
        return
    loop.add_reader(descriptor, _once, descriptor, tell)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _once(descriptor: int, tell: Callable[[], object]) -> None:
    # It stays readable, and would wake the loop for ever.
    asyncio.get_running_loop().remove_reader(descriptor)
    tell()
