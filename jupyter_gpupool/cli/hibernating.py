"""`hibernate`, `resume`: give a claim's devices back and keep its results; have devices again."""

from typing import TYPE_CHECKING

import click

from .asking import ask
from .claims import claim_line
from .output import json_option, show_json

if TYPE_CHECKING:
    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.protocol.api import ClaimView


@click.command()
@click.argument("claim")
@click.option("--reason", default="", help="Kept with the claim.")
@json_option
def hibernate(claim: str, *, reason: str, as_json: bool) -> None:
    """Give CLAIM's devices back and keep its results, its scheduler and its client."""

    async def question(client: "PoolClient") -> "ClaimView":
        return await client.hibernate((await client.find_claim(claim)).id, reason)

    _show(ask(question), as_json=as_json)


@click.command()
@click.argument("claim")
@json_option
def resume(claim: str, *, as_json: bool) -> None:
    """Have devices again for CLAIM, which hibernates, as soon as the pool has room."""

    async def question(client: "PoolClient") -> "ClaimView":
        return await client.resume((await client.find_claim(claim)).id)

    _show(ask(question), as_json=as_json)


def _show(view: "ClaimView", *, as_json: bool) -> None:
    show_json(view) if as_json else click.echo(claim_line(view))
