"""`usage`: GPU-hours held, busy, idle and won back, as a table, JSON, CSV or a picture."""

import csv
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import parse_duration

from .asking import ask
from .output import json_option, show_json, show_table, table
from .usage_plot import usage_svg

if TYPE_CHECKING:
    from rich.table import Table

    from jupyter_gpupool.protocol.usage import UsageRowView, UsageView, UsedView

NOTHING = "Nothing was held in that time."
_DAY_S = 86_400
_BY = click.Choice(["user", "queue", "day"])
_AMOUNTS = "held", "busy", "idle", "unknown", "won_back"


@click.command()
@click.option("--since", default="7d", show_default=True, help="The last days, as 7d: whole ones.")
@click.option("--by", multiple=True, type=_BY, help="What a row is about; may be repeated. [user]")
@click.option("--zone", default="UTC", show_default=True, help="Time zone whose midnights count.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw an SVG here.")
@json_option
def usage(
    *, since: str, by: tuple[str, ...], zone: str, as_csv: bool, plot: Path | None, as_json: bool
) -> None:
    """Show GPU-hours that were held, busy, idle and won back, today included.

    Yours; for whoever leads a queue all of it, for admins everybody's. UNKNOWN is what nobody could
    tell, such as while a claim starts; it is never counted as idle. WON BACK is an estimate of what
    others got because idle claims were taken, and no part of HELD.
    """
    from jupyter_gpupool.protocol.usage import UsageBy  # noqa: PLC0415 - `--help` need not pay

    days, kinds = _days(since), tuple(UsageBy(each) for each in by)
    view = ask(lambda client: client.usage(days=days, by=kinds or (UsageBy.USER,), zone=zone))
    if plot is not None:
        _draw(view, plot)
    if as_json:
        show_json(view)
    elif as_csv:
        _write_csv(view)
    else:
        show_table(usage_table(view), NOTHING)


def usage_table(view: "UsageView") -> "Table":
    """One row each, and the sum below."""
    made = table(*(by.value.upper() for by in view.by), *_headings())
    for row in view.rows:
        made.add_row(*_about(view, row), *_hours(row))
    if len(view.rows) > 1:
        made.add_row("all", *[""] * (len(view.by) - 1), *_hours(view.total))
    return made


def _days(since: str) -> int:
    from jupyter_gpupool.protocol.usage import MOST_DAYS  # noqa: PLC0415 - see above

    days = math.ceil(parse_duration(since, field="since").total_seconds() / _DAY_S)
    if days > MOST_DAYS:
        raise BadRequest(f"Only the last {MOST_DAYS} days are kept.", field="since")
    return days


def _headings() -> tuple[str, ...]:
    return tuple(name.replace("_", " ").upper() for name in _AMOUNTS)


def _about(view: "UsageView", row: "UsageRowView") -> tuple[str, ...]:
    named = {"user": row.user, "queue": row.queue or "default", "day": row.day}
    return tuple(str(named[by.value]) for by in view.by)


def _hours(row: "UsedView") -> tuple[str, ...]:
    return tuple(f"{getattr(row, name):.2f} h" for name in _AMOUNTS)


def _write_csv(view: "UsageView") -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*(by.value for by in view.by), *(f"{name}_gpu_hours" for name in _AMOUNTS)])
    for row in view.rows:
        about = (_unarmed(text) for text in _about(view, row))
        writer.writerow([*about, *(getattr(row, name) for name in _AMOUNTS)])


def _unarmed(text: str) -> str:
    # A spreadsheet would run a name that looks like a formula.
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text


def _draw(view: "UsageView", path: Path) -> None:
    labels = [" · ".join(_about(view, row)) for row in view.rows]
    try:
        path.write_text(usage_svg(view, labels), encoding="utf-8")
    except OSError as error:
        raise BadRequest(
            f"The picture cannot be written to {path}: {error.strerror}.", field="plot"
        ) from error
    click.echo(f"Drawn: {path}", err=True)
