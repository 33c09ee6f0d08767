"""From the text after `%gpupool` to what a notebook shows: parse, run, show or return.

Called by `extension`. The one place where an error becomes a line.
"""

# mypy: allow-untyped-calls
# IPython types only some of what it offers.

import ast
import shlex
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from executing import Source
from IPython.core.error import UsageError
from IPython.display import display

from jupyter_gpupool.notebook.command_line import mistake_in_words
from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.pool.lacking import lacking

from .answer import Answer
from .cell_command import CellAsked, cell_command
from .commands import commands
from .failures import Interrupted
from .holding import Held

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_CALLED_BY_CELL = "run_line_magic"


def call(shell: "InteractiveShell", line: str, cell: str | None) -> object:
    """Run a magic's line, or the cell below it.

    Raises:
        UsageError: One line, for whatever the user or the pool can mend.
        KeyboardInterrupt: Once.
    """
    held = _held_by(shell)
    try:
        if cell is not None:
            return _run_cell(held, line, cell)
        return _answered(_run_line(held, line))
    except click.ClickException as error:
        said = mistake_in_words(error, "%gpupool")
        # IPython runs no cell magic without a cell, not even for its help.
        raise UsageError(said.replace("%%gpupool", "%gpupool")) from None
    except PoolError as error:
        raise UsageError(_one_line(str(error))) from None
    except ModuleNotFoundError as error:
        raise UsageError(_one_line(str(lacking("This", error)))) from None
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted from None


def _run_line(held: Held, line: str) -> object:
    return _invoked(commands, "%gpupool", _words(line), held)


def _run_cell(held: Held, line: str, source: str) -> object:
    return _invoked(cell_command, "%%gpupool", _words(line), CellAsked(held=held, source=source))


def _invoked(command: click.Command, name: str, words: Sequence[str], given: object) -> object:
    try:
        with command.make_context(name, list(words), obj=given) as context:
            return command.invoke(context)
    except click.exceptions.Exit:
        # `--help` has printed all there is to say.
        return None


def _words(line: str) -> Sequence[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise click.UsageError(f"{error}: {line}.") from error


def _answered(answer: object) -> object:
    if not isinstance(answer, Answer):
        return None
    if answer.said:
        click.echo(answer.said)
    if not _is_statement():
        return answer.value
    if answer.shows:
        display(answer.value)
    return None


def _is_statement() -> bool:
    """Whether the cell does nothing with the magic's value: then we show it, else we return it."""
    frame = _frame_of_cell()
    node: Any = None if frame is None else Source.executing(frame).node
    return isinstance(getattr(node, "parent", None), ast.Expr)


def _frame_of_cell() -> FrameType | None:
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - there is no other way to the caller
    while frame is not None and frame.f_code.co_name != _CALLED_BY_CELL:
        frame = frame.f_back
    return None if frame is None else frame.f_back


def _one_line(text: str) -> str:
    return " ".join(text.split())


_held: dict[int, Held] = {}
"""By shell: what each holds; a process has one shell, a test may have several."""


def _held_by(shell: "InteractiveShell") -> Held:
    return _held.setdefault(id(shell), Held(shell))
