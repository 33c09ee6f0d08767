"""`claim`, `claims`, `scale`, `release`: what a user holds."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jupyter_gpupool.notebook.command_line import bounds, devices
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.units import parse_duration, plural

from .asking import ask, the_pool
from .output import ago, json_option, show_json, show_table, table

if TYPE_CHECKING:
    from rich.table import Table

    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.protocol.api import ClaimView, StatusView


_F = TypeVar("_F", bound=Callable[..., Any])
_MOST_LISTED = 1000
_ON_IDLE = [each.value for each in OnIdle]
_TERMS = (
    click.argument("gpus", default="2"),
    click.option("--name", default="", help="What to call the claim."),
    click.option("--model", default="", help='Part of the model\'s name, such as "H100".'),
    click.option("--gpu-memory", default="", help='A part of a device so large: "10GiB" a worker.'),
    click.option("--min-gpu-memory", default="", help='Least memory of a device: "40GiB".'),
    click.option("--gpus-per-worker", type=float, help="Devices of each worker, on one host."),
    click.option("--memory", default="", help='Host memory a worker, such as "16GiB".'),
    click.option("--nthreads", default=1, show_default=True, help="Threads a worker."),
    click.option("--time-limit", help='When it ends by itself, such as "2h".'),
    click.option("--environment", default="", help="Which of the hosts' Python environments."),
    click.option("--queue", default="", help="In which queue."),
    click.option("--priority", default="", help="Of which priority class."),
    click.option("--on-idle", type=click.Choice(_ON_IDLE), help="What becomes of it when idle."),
    click.option("--idle-after", metavar="TIME", help='After how long, such as "30min".'),
    click.option("--expected", help='How long you expect to use it, such as "40min".'),
)


def claim_terms(command: _F) -> _F:
    """Give a command what says which devices are meant."""
    for option in reversed(_TERMS):
        command = option(command)
    return command


@click.command()
@claim_terms
@click.option("--timeout", help='Give up if it does not start within this time, such as "10min".')
@click.option("--detach", is_flag=True, help="Ask for it, leave it to itself and come back.")
@json_option
def claim(
    gpus: str, *, timeout: str | None, detach: bool, as_json: bool, **terms: str | float | None
) -> None:
    """Claim GPUS devices (a number, "1-4", or "0.5"; 2 if left out), and hold them until Ctrl-C.

    In Python, `jupyter_gpupool.attach(ID)` is then its Dask cluster.
    """
    from .holding import hold, leave, wish  # noqa: PLC0415 - 0.3 s

    wished = wish(devices(gpus), timeout, terms)
    if detach:
        leave(the_pool(), wished, show_json if as_json else show_line)
    else:
        hold(the_pool(), wished, show_json if as_json else show_running)


@click.command()
@click.option("--owner", help="Only this user's; an admin sees everybody's.")
@click.option("--ended", is_flag=True, help="Those that have ended, too, and why.")
@click.option(
    "--since",
    metavar="TIME",
    help='Of those that have ended, the ones within it: "7d". Has --ended.',
)
@json_option
def claims(*, owner: str | None, ended: bool, since: str | None, as_json: bool) -> None:
    """List claims."""
    span = None if since is None else parse_duration(since, field="since")
    limit = None if span is None else _MOST_LISTED
    has_ended = ended or span is not None
    views = ask(lambda client: client.claims(owner=owner, ended=has_ended, limit=limit))
    if span is not None:
        views = ended_after(views, datetime.now(UTC) - span)
    if as_json:
        show_json(views)
    else:
        show_table(claims_table(views), "You hold no claim.")


@click.command()
@click.argument("claim")
@click.argument("workers")
@json_option
def scale(claim: str, workers: str, *, as_json: bool) -> None:
    """Give CLAIM (id or name) other bounds: a number of WORKERS, or "1-4"; with 0 it hibernates."""
    low, high = bounds(workers)

    async def rescale(client: "PoolClient") -> "tuple[ClaimView, StatusView]":
        found = await client.find_claim(claim)
        least = min(found.workers.min, high) if low == high else low
        return await client.scale(found.id, least, high), await client.status()

    view, status = ask(rescale)
    if short := shortage(high, status):
        click.echo(short, err=True)
    show_json(view) if as_json else click.echo(claim_line(view))


@click.command()
@click.argument("claims", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All that you hold.")
@click.option("--reason", default="", help="Kept with the claim.")
@json_option
def release(claims: tuple[str, ...], *, every: bool, reason: str, as_json: bool) -> None:
    """Give CLAIMS (ids or names) back."""
    if bool(claims) == every:
        raise click.UsageError("Name the claims to release, or say --all.")
    views = ask(lambda client: release_claims(client, claims, reason))
    if as_json:
        show_json(views)
        return
    for view in views:
        click.echo(claim_line(view))


async def release_claims(
    client: "PoolClient", names: Sequence[str], reason: str = ""
) -> "Sequence[ClaimView]":
    """Release these claims, or all of the caller's own if none is named."""
    if not names:
        return await client.release_all(reason)
    ids = [(await client.find_claim(name)).id for name in names]
    return [await client.release(claim_id, reason) for claim_id in ids]


def shortage(workers: int, status: "StatusView") -> str:
    """What a claim of that many workers has to wait for; "" if the pool has devices enough."""
    if workers <= status.devices:
        return ""
    if not status.hosts:
        # One that has just been started is no pool of 0 devices: its hosts are still to join.
        return "No host of the pool is in touch now."
    return f"The pool has no more than {plural(status.devices, 'device')} now."


def ended_after(views: "Sequence[ClaimView]", moment: datetime) -> "Sequence[ClaimView]":
    """Those that live, and those that ended after a moment."""
    return [view for view in views if view.phase != Phase.ENDED or view.phase_since > moment]


def claims_table(views: "Sequence[ClaimView]") -> "Table":
    """One row a claim."""
    made = table("CLAIM", "NAME", "OWNER", "PHASE", "SINCE", "WORKERS", "REASON")
    for view in views:
        made.add_row(
            view.id,
            "" if view.name == view.id else view.name,
            view.owner,
            phase_of(view),
            ago(view.phase_since),
            workers_of(view),
            why(view),
        )
    return made


def phase_of(view: "ClaimView") -> str:
    """Its phase, and how it ended."""
    return view.phase if view.end is None else f"{view.phase}, {view.end}"


def show_running(view: "ClaimView") -> None:
    """Tell how a claim that is held is used."""
    held = plural(len(view.leases) or view.workers.min, "worker")
    click.echo(f"Claim {view.name} runs with {held}. In Python:")
    click.echo(f'  cluster = jupyter_gpupool.attach("{view.id}")')
    click.echo("Ctrl-C gives it back.")


def show_line(view: "ClaimView") -> None:
    """Print a claim in a line."""
    click.echo(claim_line(view))


def claim_line(view: "ClaimView") -> str:
    """A claim in a line."""
    return f"{view.id}  {view.phase}  {workers_of(view)}  {why(view)}"


def workers_of(view: "ClaimView") -> str:
    """How many workers it has, of how many it wants."""
    held = sum(lease.phase in ("granted", "running") for lease in view.leases)
    return f"{held} of {plural(view.workers.max, 'worker')}"


def why(view: "ClaimView") -> str:
    """Why it is as it is."""
    if view.wait is None and view.warning is None:
        return view.problem or view.own_wish or view.reason
    from jupyter_gpupool.notebook.moments import (  # noqa: PLC0415 - 0.3 s
        here_and_now,
        place_text,
        starts_text,
    )

    if view.wait is None:
        from jupyter_gpupool.notebook.warned import warning_sentence  # noqa: PLC0415 - as above

        assert view.warning is not None, "looked at above"
        return warning_sentence(view.warning, here_and_now())

    told = [place_text(view.wait), starts_text(view.wait, here_and_now())]
    about = ", ".join(filter(None, told))
    return f"{about}: {view.wait.reason}" if about else view.wait.reason
