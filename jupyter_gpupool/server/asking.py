"""Asks a kernel that has just come up until it is heard: what it said before that is lost.

Called by `kernels`. A subscriber hears nothing of what was said before its connection stood, and a
restart breaks every connection: the beginning of a first cell may go by unheard, or all that a
kernel says until somebody uses it. A kernel answers in turn, so a question that is heard to its end
says that no code is under way any more.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

_TRAVEL_S = 0.5
"""What a kernel broadcasts about a question may arrive after its answer, by so much at most."""

_PATIENCE_S = 60.0
"""A question that is not answered for so long may be lost, or wait behind a long cell."""


async def ask_until_heard(kernel: Any, is_heard: Callable[[], bool]) -> None:
    """Ask for the kernel's description, one question at a time.

    Args:
        kernel: jupyter_client's manager of it.
        is_heard: Whether anything it broadcast was heard.
    """
    stream, answered = kernel.connect_shell(), asyncio.Event()
    stream.on_recv(lambda _parts: answered.set())
    try:
        while not is_heard():
            answered.clear()
            kernel.session.send(stream, "kernel_info_request")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await answered.wait()
            await asyncio.sleep(_TRAVEL_S)
    finally:
        stream.close()
