"""The group `policy`."""

import click

from jupyter_gpupool.notebook.command_line import Commands

from .apply import apply
from .check import check
from .diff import diff
from .dry_run import dry_run
from .history import history
from .rollback import rollback
from .show import show


@click.group(cls=Commands)
def policy() -> None:
    """See, check, compare and change the pool's policy.

    FILE is a TOML document, "-" standard input. For admins; users see their queues with show.
    """


for _command in (show, check, dry_run, diff, apply, history, rollback):
    policy.add_command(_command)
