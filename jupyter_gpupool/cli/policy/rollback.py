"""`policy rollback`: puts an earlier revision into force again."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.cli.asking import ask
from jupyter_gpupool.cli.output import json_option

from .apply import DECLINED, agrees, comment_option, say, yes_option
from .check import REFUSED, complain, looked_at

if TYPE_CHECKING:
    from jupyter_gpupool.protocol.policy_views import AppliedView


@click.command()
@click.argument("revision", type=click.IntRange(min=0))
@comment_option
@yes_option
@json_option
def rollback(*, revision: int, comment: str, yes: bool, as_json: bool) -> int:
    """Put the document of REVISION into force again, after showing what that changes.

    It becomes a new revision: what came in between stays in the history. 0 is how every pool
    begins. The exit status is 1 if today's pool refuses it.
    """
    earlier = ask(lambda client: client.policy.revision(revision))
    seen = looked_at(earlier.source)
    if seen.problems:
        complain(f"revision {revision}", seen)
        return REFUSED
    question = f"Go back to revision {revision}, as revision {seen.next_revision}?"
    if not yes and not agrees(seen, question):
        return DECLINED
    told = () if yes else seen.warnings
    say(_rolled_back(revision, comment, seen.revision), told, as_json=as_json)
    return 0


def _rolled_back(revision: int, comment: str, seen: int) -> "AppliedView":
    from jupyter_gpupool.client.bodies import make  # noqa: PLC0415 - 0.3 s
    from jupyter_gpupool.protocol.policy_views import RollbackBody  # noqa: PLC0415 - as above

    body = make(RollbackBody, revision=revision, comment=comment, expected_revision=seen)
    return ask(lambda client: client.policy.roll_back(body))
