"""Runs a notebook's cell on a worker. Called there, as a task, by what `remote` sends.

Imports what every worker has. A cell sees the variables that earlier cells of the same notebook
left on this worker, as it would in a kernel.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

import ast
import linecache
import os
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from distributed import get_worker

from .cell import Cell, Outcome, Raised
from .passing import CannotPass, pack, unpack
from .running import RUNS, make_sleep_wakeable
from .shown import shown
from .speaking import Speech, speak

_WHERE = "on the worker"
_namespaces: dict[str, dict[str, Any]] = {}


def run_cell(cell: Cell, ins: Mapping[str, bytes]) -> Outcome:
    """Run a cell to its end, whatever that is; `ins` are variables to set first, pickled."""
    speech = Speech(get_worker(), cell)
    try:
        try:
            outcome = _run(cell, ins, speech)
        finally:
            RUNS.end(cell.id)
    except KeyboardInterrupt as late:
        # It came between the cell's end and the moment from which none can come any more.
        RUNS.end(cell.id)
        outcome = Outcome(raised=_raised(late, cell))
    speak(None)
    speech.flush()
    return Outcome(
        spoken=speech.spoken,
        shown=outcome.shown,
        raised=outcome.raised,
        outs=outcome.outs,
        problem=outcome.problem,
    )


def interrupt_cell(cell_id: str) -> None:
    """Raise KeyboardInterrupt in a cell; on the worker's loop, beside the task."""
    RUNS.interrupt(cell_id)


def end_worker() -> None:
    """End this worker's process at once: its agent starts it anew."""
    os._exit(0)


def forget_topic(topic: str, dask_scheduler: Any) -> None:
    """Let the scheduler forget what a cell has printed; it keeps events for whoever asks later."""
    dask_scheduler._broker.truncate(topic)  # noqa: SLF001 - there is no public way


def _run(cell: Cell, ins: Mapping[str, bytes], speech: Speech) -> Outcome:
    make_sleep_wakeable()
    namespace = _namespaces.setdefault(cell.notebook, {"__name__": "__main__"})
    try:
        namespace.update(unpack(ins, _WHERE))
        RUNS.begin(cell.id)
        speak(speech)
        last = shown(_executed(cell, namespace))
        return Outcome(shown=last, outs=pack(cell.outs, namespace, _WHERE))
    except CannotPass as problem:
        return Outcome(problem=str(problem))
    # The user's code may raise anything, and its `sys.exit()` must not end the task.
    except BaseException as error:  # noqa: BLE001
        return Outcome(raised=_raised(error, cell))


def _executed(cell: Cell, namespace: dict[str, Any]) -> object:
    """Run a cell and return its last expression's value, or None if it shows none."""
    _remember_lines(cell)
    tree = ast.parse(cell.source, cell.label)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, cell.label, "exec", dont_inherit=True), namespace)  # noqa: S102 - it is its owner's
    if not isinstance(last, ast.Expr):
        return None
    expression = compile(ast.Expression(last.value), cell.label, "eval", dont_inherit=True)
    value: object = eval(expression, namespace)  # noqa: S307 - as above
    return None if cell.source.rstrip().endswith(";") else value


def _remember_lines(cell: Cell) -> None:
    lines = cell.source.splitlines(keepends=True)
    linecache.cache[cell.label] = (len(cell.source), None, lines, cell.label)


def _raised(error: BaseException, cell: Cell) -> Raised:
    own = _from_cell_on(error.__traceback__, cell.label)
    lines = traceback.format_exception(type(error), error, own)
    return Raised(kind=type(error).__name__, text=_text(error), traceback="".join(lines).rstrip())


def _text(error: BaseException) -> str:
    try:
        return str(error)
    # The class is the user's own, and its text may fail as anything of theirs.
    except Exception:  # noqa: BLE001
        return "its text cannot be had"


def _from_cell_on(frames: TracebackType | None, label: str) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename != label:
        frames = frames.tb_next
    return frames
