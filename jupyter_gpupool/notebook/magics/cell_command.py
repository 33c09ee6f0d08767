"""`%%gpupool`: the words of a cell's first line. Called by `calling`, and by `completion`."""

from dataclasses import dataclass

import click

from .holding import Held
from .words import HELP, claims, variables


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAsked:
    """A cell, and the notebook it is in."""

    held: Held
    source: str


@click.command(context_settings=HELP)
@click.option(
    "--on",
    shell_complete=claims,
    metavar="NAME",
    help="Which claim; else the only one of this notebook.",
)
@click.option("--worker", metavar="W", help="Which worker: its number, or its name. Else the last.")
@click.option("--in", "ins", type=variables, metavar="A,B", help="Variables to take there.")
@click.option("--out", "outs", type=variables, metavar="A,B", help="Variables to bring back.")
@click.option("--timeout", metavar="TIME", help='Stop it if it takes longer, such as "10min".')
@click.pass_obj
def cell_command(
    asked: CellAsked,
    *,
    on: str | None,
    worker: str | None,
    ins: tuple[str, ...] | None,
    outs: tuple[str, ...] | None,
    timeout: str | None,
) -> object:
    """Run this cell on a worker of a claim.

    Its variables stay on that worker for the next such cell of this notebook. What it prints is
    shown while it runs. An interrupt stops it; a second one starts the worker anew.
    """
    from .running_there import Wish, run_there  # noqa: PLC0415 - Dask, 0.5 s

    wish = Wish(source=asked.source, worker=worker, ins=ins or (), outs=outs or (), timeout=timeout)
    return run_there(asked.held, on, wish)
