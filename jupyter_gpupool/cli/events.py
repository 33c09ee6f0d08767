"""`events`: what happened, and what happens."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from .asking import ask, the_pool
from .output import json_option

if TYPE_CHECKING:
    from jupyter_gpupool.client.background import Say
    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.client.pools import Pool
    from jupyter_gpupool.protocol.api import EventView

_SHOWN = 50


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option("--claim", help="Only this claim's (id or name).")
@click.option("--after", type=click.IntRange(min=0), help="From this sequence number on.")
@click.option("--limit", type=click.IntRange(min=1), default=_SHOWN, show_default=True)
@json_option
def events(
    *, follow: bool, claim: str | None, after: int | None, limit: int, as_json: bool
) -> None:
    """Show events, oldest first; with --json one document a line."""

    async def load(client: "PoolClient") -> "tuple[str | None, int, list[EventView]]":
        claim_id = None if claim is None else (await client.find_claim(claim)).id
        seq = (await client.status()).seq
        # Events are listed from a position on: the last ones start that many before the end.
        start = max(0, seq - limit) if after is None else after
        views = await client.events(after=start, claim=claim_id, limit=limit)
        return claim_id, max((seq, *(view.seq for view in views))), list(views)

    claim_id, seq, past = ask(load)
    for view in past:
        click.echo(event_line(view, as_json=as_json))
    if not (past or follow or as_json):
        click.echo("Nothing has happened yet.")
    if follow:
        pool = the_pool()
        pool.background.run(
            lambda say: _follow(pool, claim_id, seq, say, as_json=as_json), click.echo
        )


def event_line(view: "EventView", *, as_json: bool = False) -> str:
    """An event in a line."""
    if as_json:
        return view.model_dump_json(exclude_none=True)
    about = view.claim_id or view.device or view.host_id or ""
    when = f"{view.at.astimezone():%Y-%m-%d %H:%M:%S}"
    return f"{view.seq:>6}  {when}  {view.kind:<19} {about}  {view.reason}"


async def _follow(
    pool: "Pool", claim_id: str | None, after: int, say: "Say", *, as_json: bool
) -> Any:
    from jupyter_gpupool.protocol.api import EventView  # noqa: PLC0415 - 0.2 s

    async with pool.events.watch(claim_id, after=after) as watch:
        while True:
            notice = await watch.next()
            if isinstance(notice, EventView):
                say(event_line(notice, as_json=as_json))
            await asyncio.sleep(0)
