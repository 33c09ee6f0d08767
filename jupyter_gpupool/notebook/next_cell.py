"""A line under the next cell that runs: a warning arrives while nobody looks below the last one.

Used by `voice` in kernels. Each warning is said once, whatever follows its claim; one that is
cleared or answered before a cell has ended is not said at all.
"""

# mypy: allow-untyped-calls
# IPython types only some of what it offers.

import sys
import threading
from datetime import datetime
from functools import cache
from typing import Any

from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.warned import WarningView

from .moments import here_and_now
from .warned import answers_text, warning_sentence

Told = tuple[str, datetime]
"""What makes a warning this one: its rule, and when it is due."""


class NextCell:
    """What waits to be said in a shell."""

    def __init__(self, shell: Any) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, ClaimView] = {}
        self._said: dict[str, Told] = {}
        shell.events.register("post_run_cell", self._after)

    def warn(self, view: ClaimView) -> None:
        """Say this claim's warning under the next cell, unless that was done; from any thread."""
        with self._lock:
            if view.warning is not None and self._said.get(view.id) != told(view.warning):
                self._waiting[view.id] = view

    def drop(self, claim_id: str) -> None:
        """There is nothing to be said of this claim any more; from any thread."""
        with self._lock:
            self._waiting.pop(claim_id, None)

    def _after(self, result: Any) -> None:
        # Code of tools that ask the kernel something has no cell to stand under.
        if result.info is None or result.info.silent or not result.info.store_history:
            return
        for view in self._taken():
            sys.stderr.write(f"{line_of(view, here_and_now())}\n")

    def _taken(self) -> list[ClaimView]:
        with self._lock:
            views = list(self._waiting.values())
            self._waiting.clear()
            for view in views:
                assert view.warning is not None, "only warnings wait"
                self._said[view.id] = told(view.warning)
        return views


def told(warning: WarningView) -> Told:
    """What makes a warning this one; how long it may be kept changes by the minute."""
    return warning.rule, warning.deadline


def line_of(view: ClaimView, now: datetime) -> str:
    """The whole line."""
    assert view.warning is not None, "asked for only when there is one"
    said = warning_sentence(view.warning, now)
    return f"Claim {view.name}: {said} {answers_text(view.name, view.warning, '%gpupool')}"


def next_cell() -> NextCell | None:
    """That of this kernel; None in a script or a terminal, where a line is seen at once."""
    # Where nobody has loaded IPython, there is no cell.
    module: Any = sys.modules.get("IPython.core.getipython")
    shell = None if module is None else module.get_ipython()
    return None if getattr(shell, "kernel", None) is None else _of(shell)


def heard(view: ClaimView) -> None:
    """The claim as an answer shows it: what was asked for may have settled its warning."""
    cell = next_cell()
    if cell is not None and view.warning is None:
        cell.drop(view.id)


@cache
def _of(shell: Any) -> NextCell:
    return NextCell(shell)
