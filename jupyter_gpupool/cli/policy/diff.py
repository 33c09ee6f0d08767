"""`policy diff`: what differs between a file and a revision, or between two revisions."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.cli.asking import ask
from jupyter_gpupool.cli.output import json_option, show_json

from .document import read_document, shown
from .wording import diff_text

if TYPE_CHECKING:
    from jupyter_gpupool.client.pool_client import PoolClient
    from jupyter_gpupool.protocol.policy_views import DiffView, RevisionView


@click.command()
@click.argument("file", required=False)
@click.option("--from", "before", type=click.IntRange(min=0), help="An earlier revision.")
@click.option("--to", "after", type=click.IntRange(min=0), help="A later one.")
@json_option
def diff(*, file: str | None, before: int | None, after: int | None, as_json: bool) -> None:
    """Compare FILE with the policy in force, or with the revision that --from names.

    Without FILE, two revisions: the one in force and the one before it unless --from and --to say
    otherwise.
    """
    if file is not None and after is not None:
        raise click.UsageError("--to is for two revisions: leave out FILE, or --to.")
    view = _revisions(before, after) if file is None else _with_file(file, before)
    if as_json:
        show_json(view)
    else:
        click.echo(diff_text(view) or "Nothing differs.")


def _revisions(before: int | None, after: int | None) -> "DiffView":
    return ask(lambda client: client.policy.diff(before, after))


def _with_file(file: str, before: int | None) -> "DiffView":
    from jupyter_gpupool.protocol.policy_diff import diff as compare  # noqa: PLC0415 - 0.3 s

    source = read_document(file)
    known = ask(lambda client: _revision(client, before))
    names = (f"revision {known.revision}", shown(file))
    return compare(known.source, source, names=names)


async def _revision(client: "PoolClient", number: int | None) -> "RevisionView":
    wanted = (await client.policy.current()).revision if number is None else number
    return await client.policy.revision(wanted)
