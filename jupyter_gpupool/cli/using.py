"""`explain`, `log`, `keep`, `environments`: about a claim that is held or waits.

The same words as in the notebook, from the same answers.
"""

from typing import TYPE_CHECKING

import click

from .asking import ask
from .output import json_option, show_json

if TYPE_CHECKING:
    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.notebook.answers import Explanation, Logs
    from jupyter_gpupool.protocol.api import ClaimView
    from jupyter_gpupool.protocol.bodies import View

_MOST_LINES = 1000


@click.command()
@click.argument("claim")
@json_option
def explain(claim: str, *, as_json: bool) -> None:
    """Tell why CLAIM (id or name) is where it is; or when and why it ended, if none lives."""

    async def question(client: "PoolClient") -> "Explanation":
        from jupyter_gpupool.notebook.answers import explanation_of  # noqa: PLC0415 - 0.3 s

        found = await client.find_claim(claim, ended=True)
        return await explanation_of(client, found.id)

    _show(ask(question), as_json=as_json)


@click.command()
@click.argument("claim")
@click.option("--process", help='"scheduler" or a lease\'s id; all of them if left out.')
@click.option(
    "--lines",
    type=click.IntRange(1, _MOST_LINES),
    default=100,
    show_default=True,
    help="How many of each, counted from the last.",
)
@json_option
def log(claim: str, *, process: str | None, lines: int, as_json: bool) -> None:
    """Show the last lines of CLAIM's scheduler and workers."""

    async def question(client: "PoolClient") -> "Logs":
        from jupyter_gpupool.notebook.answers import logs_of  # noqa: PLC0415 - as above

        found = await client.find_claim(claim, ended=True)
        return await logs_of(client, found.id, process, lines)

    _show(ask(question), as_json=as_json)


@click.command()
@click.argument("claim")
@click.argument("time")
@click.option("--reason", default="", help="Kept with the claim.")
@json_option
def keep(claim: str, time: str, *, reason: str, as_json: bool) -> None:
    """Have CLAIM not taken as idle for TIME from now on, such as "1h"; 0 takes that back."""
    from jupyter_gpupool.notebook.answers import kept_s  # noqa: PLC0415 - as above

    for_s = kept_s(time)

    async def question(client: "PoolClient") -> "ClaimView":
        return await client.keep_alive((await client.find_claim(claim)).id, for_s, reason)

    view = ask(question)
    show_json(view) if as_json else click.echo(_kept(view))


@click.command()
@json_option
def environments(*, as_json: bool) -> None:
    """List the Python environments that workers can run in."""
    views = ask(lambda client: client.environments())
    if as_json:
        show_json(views)
        return
    from jupyter_gpupool.notebook.answers import Environments  # noqa: PLC0415 - as above

    click.echo(repr(Environments(views)))


def _kept(view: "ClaimView") -> str:
    if view.kept_until is None:
        return f"Claim {view.name} may be taken as idle again."
    from jupyter_gpupool.notebook.moments import clock, here_and_now  # noqa: PLC0415 - as above

    until = clock(view.kept_until, here_and_now())
    return f"Claim {view.name} is kept until {until}, however idle it is."


def _show(view: "View", *, as_json: bool) -> None:
    show_json(view) if as_json else click.echo(repr(view))
