"""What a claim tells its user unasked: one line on stderr, nothing twice.

Used by `cluster`, and by the command that holds a claim.
"""

import sys

from jupyter_gpupool.pool.claim import Warning_
from jupyter_gpupool.protocol.api import ClaimView


class Voice:
    """Speaks for one claim, unless it is to be quiet."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._warned: Warning_ | None = None

    def say(self, text: str) -> None:
        """Say one line."""
        if not self._quiet:
            sys.stderr.write(f"{text}\n")

    def warn(self, view: ClaimView) -> None:
        """Say what will be taken from the claim, once for each warning."""
        if view.warning is not None and view.warning != self._warned:
            self.say(warning_text(view.name, view.warning))
        self._warned = view.warning


def warning_text(name: str, warning: Warning_) -> str:
    """A warning in one line, its deadline in the reader's own time zone."""
    deadline = warning.deadline.astimezone()
    due = f"{deadline:%Y-%m-%d %H:%M:%S %Z}"
    return f"Warning for claim {name}, due {due}: {warning.reason} (rule {warning.rule!r})"
