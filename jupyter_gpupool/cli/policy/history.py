"""`policy history`: who changed the policy when, and why."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.cli.asking import ask
from jupyter_gpupool.cli.output import json_option, moment, show_json, show_table, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from jupyter_gpupool.protocol.policy_views import RevisionView


@click.command()
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many."
)
@click.option("--before", type=click.IntRange(min=0), help="Only revisions before this one.")
@json_option
def history(*, limit: int, before: int | None, as_json: bool) -> None:
    """List the policy's revisions, newest first."""
    views = ask(lambda client: client.policy.revisions(before=before, limit=limit))
    if as_json:
        show_json(views)
    else:
        show_table(_history_table(views), "Nobody has applied a policy.")


def _history_table(views: "Sequence[RevisionView]") -> "Table":
    """One row a revision."""
    made = table("REVISION", "STATE", "APPLIED", "BY", "BACK TO", "COMMENT")
    for view in views:
        at = "" if view.at is None else moment(view.at)
        back = "" if view.restores is None else str(view.restores)
        state = "in force" if view.is_in_force else ""
        made.add_row(str(view.revision), state, at, view.by or "", back, view.comment)
    return made
