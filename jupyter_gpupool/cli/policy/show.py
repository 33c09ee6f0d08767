"""`policy show`: what is in force, or was."""

import click

from jupyter_gpupool.cli.asking import ask
from jupyter_gpupool.cli.output import json_option, show_json, show_table
from jupyter_gpupool.cli.queues import NO_QUEUE, queues_table

from .wording import revision_line, warn


@click.command()
@click.argument("revision", type=click.IntRange(min=0), required=False)
@click.option("--queues", "as_queues", is_flag=True, help="How its queues stand now instead.")
@json_option
def show(*, revision: int | None, as_queues: bool, as_json: bool) -> None:
    """Print the policy in force, or an earlier REVISION, as it was written.

    When, by whom and why it was applied goes to standard error. Users see their queues.
    """
    if revision is not None:
        _show_earlier(revision, as_json=as_json)
        return
    view = ask(lambda client: client.policy.current())
    if as_json:
        show_json(view)
    elif view.applied is None or as_queues:
        show_table(queues_table(view.queues), NO_QUEUE)
    else:
        click.echo(revision_line(view.applied), err=True)
        click.echo(view.applied.source, nl=not view.applied.source.endswith("\n"))
    if not as_json:
        warn(view.warnings)


def _show_earlier(revision: int, *, as_json: bool) -> None:
    view = ask(lambda client: client.policy.revision(revision))
    if as_json:
        show_json(view)
    else:
        click.echo(revision_line(view), err=True)
        click.echo(view.source, nl=not view.source.endswith("\n"))
