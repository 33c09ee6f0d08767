"""What is said of a wait: place and reason, once a change, and not before it is worth a word.

Used by `opening`.
"""

import asyncio

from jupyter_gpupool.client.background import Say
from jupyter_gpupool.pool.units import plural
from jupyter_gpupool.protocol.api import ClaimView

from .moments import here_and_now, place_text, starts_text

_SILENT_FOR_S = 2.0
"""A wait shorter than this is not worth a word."""
_LOOK_EVERY_S = 3.0
"""A place in line changes without an event of ours: it has to be looked up."""


class Waiting:
    """What has been said of the wait so far, so that nothing is said twice."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._since = asyncio.get_running_loop().time()
        self._last = ""

    def speak_in_s(self) -> float:
        """When to look again."""
        waited_s = asyncio.get_running_loop().time() - self._since
        return _LOOK_EVERY_S if waited_s >= _SILENT_FOR_S else _SILENT_FOR_S - waited_s

    def speak(self, view: ClaimView) -> None:
        """Say why the claim does not run yet."""
        self._once(f"Claim {view.name} {why(view)}")

    def manager_silent(self) -> None:
        """Say that nothing is known for now."""
        self._once("The pool's manager does not answer; the claim is kept, waiting for it.")

    def _once(self, text: str) -> None:
        if text != self._last:
            self._last = text
            self._say(text)


def why(view: ClaimView) -> str:
    """Why a claim does not run yet."""
    if view.wait is None:
        return f"is {view.phase}: {view.reason}"
    if view.wait.never:
        return f"waits: {view.wait.reason}"
    place = f"waits, {place_text(view.wait)} for {plural(max(1, view.workers.min), 'device')}"
    starts = starts_text(view.wait, here_and_now())
    return f"{place}{f', {starts}' if starts else ''}: {view.wait.reason}"
