"""`%gpupool claim|status|ls|…`: the commands, their words and what each does.

Called by `calling`, which shows what they answer, and by `completion`.
"""

from typing import TYPE_CHECKING, Any

import click

import jupyter_gpupool as gpupool
from jupyter_gpupool.notebook.command_line import Commands, bounds, devices

from .answer import Answer
from .cell_command import cell_command
from .holding import Held
from .words import (
    HELP,
    ON_IDLE,
    claims,
    cluster_and_client,
    environments,
    models,
    split_last,
)

if TYPE_CHECKING:
    from datetime import datetime

    from jupyter_gpupool.notebook.terms import Gpus
    from jupyter_gpupool.protocol.api import ClaimView

_holding = click.make_pass_decorator(Held)
_as = click.option(
    "--as",
    "names",
    type=cluster_and_client,
    metavar="A,B",
    default="cluster,client",
    show_default=True,
    help="Variables for the cluster and its client.",
)


class _WithCells(Commands):
    """Its help has that of cells as well: IPython runs no cell magic without a cell."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write it below the rest."""
        of_cells = click.Context(
            cell_command, info_name="%%gpupool", **cell_command.context_settings
        )
        formatter.write(f"\n{cell_command.get_help(of_cells)}\n")


@click.group(cls=_WithCells, invoke_without_command=True, context_settings=HELP)
@click.pass_context
def commands(context: click.Context) -> Answer | None:
    """The pool, from a cell. Alone it shows the pool's status.

    A cell that begins with %%gpupool runs on a worker: see below.
    """
    return context.invoke(status) if context.invoked_subcommand is None else None


@commands.command()
@click.argument("gpus", type=devices, default="2")
@click.option("--name", default="", help="What to call the claim.")
@click.option(
    "--model",
    shell_complete=models,
    metavar="TEXT",
    help='Part of the model\'s name, such as "H100".',
)
@click.option("--gpu-memory", metavar="SIZE", help='A part of a device so large: "10GiB" a worker.')
@click.option("--min-gpu-memory", metavar="SIZE", help='Least memory of a device: "40GiB".')
@click.option("--gpus-per-worker", type=float, help="Devices of each worker, on one host.")
@click.option("--memory", metavar="SIZE", help='Host memory a worker, such as "16GiB".')
@click.option("--nthreads", type=int, help="Threads a worker.")
@click.option("--time-limit", metavar="TIME", help='When it ends by itself, such as "2h".')
@click.option("--environment", shell_complete=environments, help="Which Python the workers run in.")
@click.option("--queue", help="In which queue.")
@click.option("--priority", help="Of which priority class.")
@click.option("--on-idle", type=click.Choice(ON_IDLE), help="What becomes of it when it is idle.")
@click.option("--idle-after", metavar="TIME", help='After how long, such as "30min".')
@click.option("--expected", metavar="TIME", help='How long you expect to use it: "40min".')
@click.option("--timeout", metavar="TIME", help='Give up if it has not started by then: "10min".')
@click.option("--estimate", is_flag=True, help="Only tell when it would start.")
@_as
@_holding
def claim(
    held: Held,
    /,
    gpus: "Gpus",
    *,
    estimate: bool,
    timeout: str | None,
    names: tuple[str, ...],
    **terms: str | float | None,
) -> Answer:
    """Claim GPUS devices (a number, "1-4" or "0.5"; 2 if left out): a Dask cluster, its client."""
    if estimate:
        from jupyter_gpupool.notebook.estimating import estimate as asked  # noqa: PLC0415 - as below

        said: Any = {name: value for name, value in terms.items() if value not in (None, "")}
        return Answer(value=asked(gpus, **said))
    from .claiming import claim_and_bind  # noqa: PLC0415 - Dask, 0.5 s

    return claim_and_bind(held, gpus, timeout, names, terms)


@commands.command()
@click.argument("name", shell_complete=claims)
@_as
@_holding
def attach(held: Held, name: str, *, names: tuple[str, ...]) -> Answer:
    """Get the cluster of claim NAME (or id), which goes on when this notebook ends."""
    from .claiming import attach_and_bind  # noqa: PLC0415 - as above

    return attach_and_bind(held, name, names)


@commands.command()
def status() -> Answer:
    """Show the pool in one look."""
    return Answer(value=gpupool.status())


@commands.command()
@click.option("--ended", is_flag=True, help="Those that have ended, too.")
def ls(*, ended: bool) -> Answer:
    """List claims."""
    return Answer(value=gpupool.claims(ended=ended))


@commands.command()
@click.argument("words", shell_complete=claims, nargs=-1, metavar="[NAME] WORKERS")
@_holding
def scale(held: Held, words: tuple[str, ...]) -> Answer:
    """Give a claim other bounds: a number of WORKERS, or "1-4"; with 0 it hibernates."""
    name, count = split_last(words, "scale [NAME] WORKERS")
    low, high = bounds(count)
    from .steering import meant  # noqa: PLC0415 - 0.4 s

    view = gpupool.scale(meant(held, name), high if low == high else (low, high))
    return Answer(value=view, said=_told(view), shows=False)


@commands.command()
@click.argument("name", shell_complete=claims, required=False)
@click.option("--all", "every", is_flag=True, help="All that you hold.")
@_holding
def release(held: Held, name: str | None, *, every: bool) -> Answer:
    """Give claim NAME back, or the only one of this notebook."""
    if every and name is not None:
        raise click.UsageError(
            "Name a claim or say --all, not both.", ctx=click.get_current_context()
        )
    from .steering import release_all, release_claim  # noqa: PLC0415 - as above

    views = release_all(held) if every else (release_claim(held, name),)
    text = f"Given back: {', '.join(view.name for view in views) or 'nothing'}."
    return Answer(value=views if every else views[0], said=text, shows=False)


@commands.command()
@click.argument("name", shell_complete=claims, required=False)
@click.option(
    "--lines", type=click.IntRange(min=1), default=100, show_default=True, help="Of each."
)
@click.option("--worker", metavar="W", help="Only this one's: its number, or its lease's id.")
@_holding
def log(held: Held, name: str | None, *, lines: int, worker: str | None) -> Answer:
    """Show the last lines of a claim's scheduler and workers."""
    from .steering import lease_of, meant  # noqa: PLC0415 - as above

    claim = meant(held, name)
    process = None if worker is None else lease_of(claim, worker)
    return Answer(value=gpupool.logs(claim, process=process, lines=lines))


@commands.command()
@click.argument("name", shell_complete=claims, required=False)
@_holding
def explain(held: Held, name: str | None) -> Answer:
    """Tell why a claim is where it is, and when it starts; or when and why it ended."""
    from .steering import meant  # noqa: PLC0415 - as above

    return Answer(value=gpupool.explain(meant(held, name)))


@commands.command()
@click.argument("words", shell_complete=claims, nargs=-1, metavar="[NAME] TIME")
@click.option("--reason", default="", help="Why, for whoever asks.")
@_holding
def keep(held: Held, words: tuple[str, ...], *, reason: str) -> Answer:
    """Have a claim not taken as idle for TIME from now on, such as "1h"."""
    name, time = split_last(words, "keep [NAME] TIME")
    from .steering import meant  # noqa: PLC0415 - as above

    until = gpupool.keep_alive(meant(held, name), time, reason)
    return Answer(value=until, said=_kept(until), shows=False)


@commands.command()
@click.argument("name", shell_complete=claims, required=False)
@click.option("--reason", default="", help="Kept with the claim.")
@_holding
def hibernate(held: Held, name: str | None, *, reason: str) -> Answer:
    """Give a claim's devices back and keep its results; tasks submitted meanwhile wait."""
    from .steering import meant  # noqa: PLC0415 - as above

    view = gpupool.hibernate(meant(held, name), reason)
    return Answer(value=view, said=_told(view), shows=False)


@commands.command()
@click.argument("name", shell_complete=claims, required=False)
@_holding
def resume(held: Held, name: str | None) -> Answer:
    """Have devices again for a claim that hibernates, as soon as the pool has room."""
    from .steering import meant  # noqa: PLC0415 - as above

    view = gpupool.resume(meant(held, name))
    return Answer(value=view, said=_told(view), shows=False)


def _told(view: "ClaimView") -> str:
    from jupyter_gpupool.notebook.card import card_text  # noqa: PLC0415 - as above
    from jupyter_gpupool.notebook.moments import here_and_now  # noqa: PLC0415 - as above

    return card_text(view, here_and_now())


def _kept(until: "datetime | None") -> str:
    if until is None:
        return "It may be taken as idle again."
    from jupyter_gpupool.notebook.moments import clock, here_and_now  # noqa: PLC0415 - as above

    return f"It is kept until {clock(until, here_and_now())}, however idle it is."
