"""What a claim tells its user unasked: one line on stderr, nothing twice; in kernels under a cell.

Used by `cluster`, and by the command that holds a claim.
"""

import sys

from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.warned import WarningView

from .next_cell import Told, next_cell, told
from .progress import Progress, progress


class Lasting(str):
    """A line that stays; any other one that is heard during a wait gives way to the next."""

    __slots__ = ()


class Voice:
    """Speaks for one claim, unless it is to be quiet."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._warned: Told | None = None
        self._progress: Progress | None = None

    def fall_silent(self) -> None:
        """Say nothing from now on."""
        self._quiet = True

    def say(self, text: str) -> None:
        """Say one line."""
        if not self._quiet:
            self.wait_is_over()
            sys.stderr.write(f"{text}\n")

    def hear(self, text: str) -> None:
        """Pass on what a wait has to say."""
        if isinstance(text, Lasting):
            self.say(text)
        elif not self._quiet:
            self._progress = self._progress or progress()
            self._progress.show(text)

    def wait_is_over(self, text: str = "") -> None:
        """Say what came of a wait, if it was ever spoken of."""
        shown, self._progress = self._progress, None
        if shown is not None:
            shown.end(text)

    def warn(self, view: ClaimView) -> None:
        """Say what will be taken from the claim, once for each warning.

        In a kernel that is done under the next cell, elsewhere at once.
        """
        now = None if view.warning is None else told(view.warning)
        is_new, self._warned = now != self._warned, now
        cell = next_cell()
        if cell is None:
            if view.warning is not None and is_new:
                self.say(warning_text(view.name, view.warning))
        elif view.warning is None:
            cell.drop(view.id)
        elif not self._quiet:
            cell.warn(view)

    def follows_no_more(self, claim_id: str) -> None:
        """Nobody hears of the claim any more: what was to be said of it may not be true later."""
        cell = next_cell()
        if cell is not None:
            cell.drop(claim_id)


def warning_text(name: str, warning: WarningView) -> str:
    """A warning in one line, its deadline in the reader's own time zone."""
    deadline = warning.deadline.astimezone()
    due = f"{deadline:%Y-%m-%d %H:%M:%S %Z}"
    return f"Warning for claim {name}, due {due}: {warning.reason} (rule {warning.rule!r})"
