"""How commands show what they got: a table for people, or one JSON document for programs."""

import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jupyter_gpupool.pool.units import format_duration

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.table import Table

_F = TypeVar("_F", bound=Callable[..., Any])
_PIPE_WIDTH = 200


def json_option(command: _F) -> _F:
    """Give a command its `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def show_json(shown: "BaseModel | Sequence[BaseModel] | dict[str, Any]") -> None:
    """Print one JSON document on one line."""
    click.echo(json.dumps(_plain(shown)))


def show_table(table: "Table", nothing: str) -> None:
    """Print a table, or a sentence when it has no row."""
    from rich.console import Console  # noqa: PLC0415 - 0.05 s that `--help` need not pay

    if not table.row_count:
        click.echo(nothing)
        return
    # A pipe has no width: nothing is cut off there.
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False).print(table)


def table(*columns: str) -> "Table":
    """An empty table in our plain style."""
    from rich.table import Table  # noqa: PLC0415 - see above

    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        # The first is what other commands take: in one piece, it can be copied.
        made.add_column(column, overflow="fold", no_wrap=column == columns[0])
    return made


def ago(moment: datetime, now: datetime | None = None) -> str:
    """How long a moment has been past."""
    return format_duration((now or datetime.now(UTC)) - moment)


def moment(at: datetime) -> str:
    """A moment as tables show it, the same for everybody."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _plain(shown: "BaseModel | Sequence[BaseModel] | dict[str, Any]") -> Any:
    if isinstance(shown, dict):
        return shown
    if isinstance(shown, Sequence):
        return [view.model_dump(mode="json") for view in shown]
    return shown.model_dump(mode="json")
