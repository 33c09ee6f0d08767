"""`policy apply`: puts a document into force, after its admin has seen what that changes."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.cli.asking import ask
from jupyter_gpupool.cli.output import json_option, show_json
from jupyter_gpupool.pool.errors import BadRequest

from .check import REFUSED, complain, looked_at
from .document import STANDARD_INPUT, read_document
from .wording import diff_text, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jupyter_gpupool.protocol.policy_views import AppliedView, CheckView

DECLINED = 1
comment_option = click.option(
    "-m", "--comment", default="", help="Why, for whoever reads the history."
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.command()
@click.argument("file")
@comment_option
@yes_option
@json_option
def apply(*, file: str, comment: str, yes: bool, as_json: bool) -> int:
    """Put FILE into force, after showing what it changes.

    One that is refused changes nothing; neither does one that somebody else has overtaken. The exit
    status is 1 if it is refused.
    """
    if file == STANDARD_INPUT and not yes:
        raise BadRequest(
            "Standard input cannot hold the policy and your answer.", hint="Add --yes."
        )
    source = read_document(file)
    seen = looked_at(source)
    if seen.problems:
        show_json(seen) if as_json else complain(file, seen)
        return REFUSED
    if not yes and not agrees(seen, f"Apply this as revision {seen.next_revision}?"):
        return DECLINED
    told = () if yes else seen.warnings
    say(_applied(source, comment, seen.revision), told, as_json=as_json)
    return 0


def agrees(seen: "CheckView", question: str) -> bool:
    """Show what would change, if anything, and ask."""
    if not seen.diff.text:
        return True
    click.echo(diff_text(seen.diff), err=True)
    warn(seen.warnings)
    if click.confirm(question, err=True):
        return True
    click.echo("Nothing was changed.", err=True)
    return False


def say(view: "AppliedView", told: "Sequence[str]", *, as_json: bool) -> None:
    """Tell what came of it, without the warnings that were told before."""
    if as_json:
        show_json(view)
        return
    new = "is in force" if view.is_new else "was in force already"
    click.echo(f"Revision {view.revision} {new}.")
    warn(warning for warning in view.warnings if warning not in told)


def _applied(source: str, comment: str, seen: int) -> "AppliedView":
    from jupyter_gpupool.client.bodies import make  # noqa: PLC0415 - 0.3 s
    from jupyter_gpupool.protocol.policy_views import ApplyBody  # noqa: PLC0415 - as above

    # What was shown is what is changed: whoever was faster is not overwritten.
    body = make(ApplyBody, source=source, comment=comment, expected_revision=seen)
    return ask(lambda client: client.policy.apply(body))
