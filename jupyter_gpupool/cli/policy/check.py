"""`policy check`: what would come of applying a document."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.cli.asking import ask
from jupyter_gpupool.cli.output import json_option, show_json
from jupyter_gpupool.pool.units import plural

from .document import read_document, shown
from .wording import problem_lines, warn

if TYPE_CHECKING:
    from jupyter_gpupool.protocol.policy_views import CheckView

REFUSED = 1


@click.command()
@click.argument("file")
@json_option
def check(*, file: str, as_json: bool) -> int:
    """Say what is wrong with FILE, each with its line and key, and what it would mean.

    Nothing is changed. The exit status is 1 if it would be refused.
    """
    view = looked_at(read_document(file))
    if as_json:
        show_json(view)
    elif not view.problems:
        count = len(view.diff.changes)
        differs = f"{plural(count, 'key')} differ{'s' if count == 1 else ''} from"
        same = "Nothing differs from"
        click.echo(f"{shown(file)}: good. {differs if count else same} revision {view.revision}.")
        warn(view.warnings)
    else:
        complain(file, view)
    return REFUSED if view.problems else 0


def looked_at(source: str) -> "CheckView":
    """What the pool says of a document."""
    from jupyter_gpupool.client.bodies import make  # noqa: PLC0415 - 0.3 s
    from jupyter_gpupool.protocol.policy_views import CheckBody  # noqa: PLC0415 - as above

    body = make(CheckBody, source=source)
    return ask(lambda client: client.policy.check(body))


def complain(file: str, view: "CheckView") -> None:
    """Write down what is wrong, a line each."""
    for line in problem_lines(shown(file), view.problems):
        click.echo(line, err=True)
