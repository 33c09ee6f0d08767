"""`demo`: from nothing to results on claimed devices and back to nothing, in some seconds.

Shows what it ran on and where the time went. The steps themselves are in `demo_run`.
"""

from typing import TYPE_CHECKING

import click

from .output import json_option, show_json, table

if TYPE_CHECKING:
    from .demo_run import DemoReport, Step

_BAR_WIDTH = 24


@click.command()
@json_option
def demo(*, as_json: bool) -> None:
    """Bring up a private pool, claim workers, compute on them, and leave nothing behind."""
    from jupyter_gpupool.client.manager_process import check_installed  # noqa: PLC0415 - 0.1 s

    check_installed()
    from .demo_run import run_demo  # noqa: PLC0415 - imports Dask

    report = run_demo(lambda text: click.echo(text, err=as_json))
    if as_json:
        show_json(report.as_dict())
    else:
        show_report(report)


def show_report(report: "DemoReport") -> None:
    """Print where the time went."""
    from rich.console import Console  # noqa: PLC0415 - 0.05 s that `--help` need not pay

    longest_s = max(step.seconds for step in report.steps)
    made = table("WHAT", "TIME", "", "RESULT")
    for step in report.steps:
        made.add_row(step.what, _time(step), _bar(step, longest_s), step.result)
    console = Console(width=100, highlight=False)
    console.print(made)
    console.print(
        f"Done in {report.total_s:.1f} s; {report.processes} processes were started and"
        " none is left."
    )


def _time(step: "Step") -> str:
    return f"{step.seconds * 1000:6.0f} ms"


def _bar(step: "Step", longest_s: float) -> str:
    return "█" * max(1, round(_BAR_WIDTH * step.seconds / longest_s))
