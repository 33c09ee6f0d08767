"""`estimate`: when a claim would start that is not made."""

import click

from jupyter_gpupool.notebook.command_line import devices

from .asking import ask
from .claims import claim_terms
from .output import json_option, show_json


@click.command()
@claim_terms
@json_option
def estimate(gpus: str, *, as_json: bool, **terms: str | float | None) -> None:
    """Tell when a claim of GPUS devices (a number, "1-4", or "0.5") would start, and claim nothing.

    Also what would start sooner: fewer devices, or those of another model.
    """
    from jupyter_gpupool.notebook.estimating import estimate_of  # noqa: PLC0415 - 0.3 s

    from .holding import wish  # noqa: PLC0415 - as above

    body = wish(devices(gpus), None, terms).body
    found = ask(lambda client: estimate_of(client, body))
    show_json(found) if as_json else click.echo(repr(found))
