"""`policy dry-run`: what a document's rules on idle claims would have done lately."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.cli.asking import ask
from jupyter_gpupool.cli.output import json_option, moment, show_json, show_table, table
from jupyter_gpupool.pool.units import plural

from .document import read_document

if TYPE_CHECKING:
    from rich.table import Table

    from jupyter_gpupool.protocol.dry_run import DryRunView


@click.command(name="dry-run")
@click.argument("file")
@click.option(
    "--days",
    type=click.FloatRange(0, 366, min_open=True),
    default=14.0,
    show_default=True,
    help="On what was seen in so many days.",
)
@json_option
def dry_run(*, file: str, days: float, as_json: bool) -> None:
    """Try the rules on idle claims of FILE on claims as they were used; nothing is changed.

    Whether users would have kept what they were warned of nobody knows: it is the most that would
    have been taken.
    """
    view = _tried(read_document(file), days)
    if as_json:
        show_json(view)
        return
    show_table(_takings(view), "Nothing would have been taken.")
    click.echo(_summary(view))
    if view.left_out:
        more = plural(view.left_out, "more claim")
        click.echo(f"There was no time for {more}: ask for fewer days.", err=True)


def _tried(source: str, days: float) -> "DryRunView":
    from jupyter_gpupool.client.bodies import make  # noqa: PLC0415 - 0.3 s
    from jupyter_gpupool.protocol.dry_run import DryRunBody  # noqa: PLC0415 - as above

    body = make(DryRunBody, source=source, days=days)
    return ask(lambda client: client.policy.dry_run(body))


def _takings(view: "DryRunView") -> "Table":
    """One row each."""
    made = table("CLAIM", "OWNER", "WHEN", "RULE", "BECAUSE", "ACTION", "GPUS", "WON", "MISSED")
    for each in view.takings:
        made.add_row(
            each.claim,
            each.owner,
            moment(each.at),
            each.rule,
            each.ground,
            each.action,
            f"{each.devices:g}",
            f"{each.won_gpu_hours:.1f} h",
            "busy" if each.was_busy else "soon" if each.hurts else "",
        )
    return made


def _summary(view: "DryRunView") -> str:
    noticed = f", {view.hurt} of them noticed at once or soon" if view.hurt else ""
    return (
        f"{plural(view.claims, 'claim')} in {plural(round(view.days), 'day')}: taken"
        f" {plural(view.taken, 'time')}{noticed}, {plural(view.warned, 'warning')},"
        f" {view.won_gpu_hours:.1f} GPU-hours won."
    )
