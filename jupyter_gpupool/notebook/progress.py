"""One line about a wait, kept up to date where that is possible.

Used by `voice`. A notebook updates its output, a terminal its line; anything else, such as a file,
gets a line a change.
"""

import shutil
import sys
from typing import Any, Protocol

from .this_kernel import is_kernel

_CLEARED = "\r\x1b[K"


class Progress(Protocol):
    """Shows how a wait goes on."""

    def show(self, text: str) -> None:
        """What is so now."""

    def end(self, text: str) -> None:
        """What came of it; "" leaves the last word standing."""


def progress() -> Progress:
    """What suits where this process's stderr goes."""
    if is_kernel():
        return InCell()
    return OnTerminal() if sys.stderr.isatty() else InLines()


class InCell:
    """Below the running cell, in one output that changes."""

    def __init__(self) -> None:
        self._shown: Any = None

    def show(self, text: str) -> None:
        """Write it, or over what was there."""
        from IPython import display  # noqa: PLC0415 - there is IPython only in a kernel

        content = {"text/plain": text}
        if self._shown is None:
            publish: Any = display.display
            self._shown = publish(content, raw=True, display_id=True)
        else:
            self._shown.update(content, raw=True)

    def end(self, text: str) -> None:
        """Write it as the last word."""
        if text:
            self.show(text)


class OnTerminal:
    """On one line of a terminal."""

    def show(self, text: str) -> None:
        """Write it over what was there."""
        # A line that wraps could not be overwritten.
        columns = shutil.get_terminal_size().columns
        sys.stderr.write(f"{_CLEARED}{text if len(text) < columns else text[: columns - 2] + '…'}")
        sys.stderr.flush()

    def end(self, text: str) -> None:
        """Write it and leave the line."""
        sys.stderr.write(f"{_CLEARED}{text}\n" if text else "\n")


class InLines:
    """In lines below each other, one a change."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, text: str) -> None:
        """Write it if it is new."""
        if text != self._last:
            self._last = text
            sys.stderr.write(f"{text}\n")

    def end(self, text: str) -> None:
        """Write it as the last word."""
        if text:
            self.show(text)
