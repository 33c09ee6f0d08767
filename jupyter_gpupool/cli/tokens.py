"""`token`: who may talk to the pool."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.notebook.command_line import Commands
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import parse_duration

from .asking import ask, the_pool
from .output import json_option, show_json, show_table, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from jupyter_gpupool.protocol.api import TokenView


@click.group(cls=Commands)
def token() -> None:
    """Make, list and revoke tokens."""


@token.command()
@click.option("--user", help="Whose; only an admin may name another than themself.")
@click.option(
    "--role", type=click.Choice(["user", "admin", "agent"]), default="user", show_default=True
)
@click.option("--label", default="", help="What it is for.")
@click.option("--expires", help='When it ends by itself, such as "30d".')
@click.option("--os-user", help="Whose processes the workers of that user are.")
@json_option
def create(
    *,
    user: str | None,
    role: str,
    label: str,
    expires: str | None,
    os_user: str | None,
    as_json: bool,
) -> None:
    """Make a token. It is printed once, and known to nobody afterwards."""
    from jupyter_gpupool.client.address import Source  # noqa: PLC0415 - as below
    from jupyter_gpupool.client.bodies import make  # noqa: PLC0415 - 0.2 s
    from jupyter_gpupool.protocol.api import Role, TokenBody  # noqa: PLC0415 - as above

    if user == "":
        raise BadRequest(
            "--user is empty, which names nobody.",
            field="user",
            hint="Leave it out for a token of your own.",
        )
    life_s = None if expires is None else parse_duration(expires, field="expires").total_seconds()
    body = make(
        TokenBody,
        user=user or "",
        role=Role(role),
        label=label,
        expires_in_s=life_s,
        os_user=os_user,
    )
    pool = the_pool()
    made = pool.background.run(lambda _say: pool.client.make_token(body))
    if pool.address.source is Source.RUNTIME_FILE:
        click.echo(
            f"This is a token of your private pool on this machine ({pool.address.url});"
            " for a token of another pool, set GPUPOOL_URL and GPUPOOL_TOKEN first.",
            err=True,
        )
    if as_json:
        show_json(made)
        return
    whose = "agents" if made.role is Role.AGENT else f"{made.user} ({made.role})"
    click.echo(f"A token for {whose}, id {made.id}:", err=True)
    click.echo(made.secret)


@token.command(name="list")
@json_option
def list_(*, as_json: bool) -> None:
    """List tokens, without their secrets."""
    views = ask(lambda client: client.tokens())
    if as_json:
        show_json(views)
    else:
        show_table(tokens_table(views), "There is no token.")


@token.command()
@click.argument("ids", nargs=-1, required=True)
@json_option
def revoke(ids: tuple[str, ...], *, as_json: bool) -> None:
    """Make tokens worthless, at once."""
    for token_id in ids:
        ask(lambda client, token_id=token_id: client.revoke_token(token_id))  # type: ignore[misc]
    if as_json:
        show_json({"revoked": list(ids)})
    else:
        click.echo(f"Revoked: {', '.join(ids)}")


def tokens_table(views: "Sequence[TokenView]") -> "Table":
    """One row a token."""
    made = table("ID", "USER", "ROLE", "LABEL", "EXPIRES", "LAST USED")
    for view in views:
        expires = "never" if view.expires_at is None else f"{view.expires_at:%Y-%m-%d %H:%M} UTC"
        used = "" if view.last_used_at is None else f"{view.last_used_at:%Y-%m-%d %H:%M} UTC"
        made.add_row(view.id, view.user, view.role, view.label, expires, used)
    return made
