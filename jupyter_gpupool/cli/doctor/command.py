"""The command `doctor`: looks, tells, and says by its exit status how bad it is."""

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator

import click

from jupyter_gpupool.cli.output import json_option, show_json


@click.command()
@json_option
def doctor(*, as_json: bool) -> int:
    """Find what would trip you up, and how to mend it.

    Looks at the pool, devices, Python, Jupyter, files and the machine, for five seconds at most.
    Changes nothing, and starts no pool.

    The exit status is 0 if all is well or there are notes alone, 1 if something will not work, 2
    if the doctor could not look at everything but saw nothing broken, 3 if there are warnings: it
    works, until something more goes wrong.
    """
    from .examination import examine  # noqa: PLC0415 - 0.4 s that `--help` need not pay
    from .finding import exit_status  # noqa: PLC0415 - as above
    from .report import document, show  # noqa: PLC0415 - as above

    with _quietly():
        told = examine(os.environ)
    if as_json:
        show_json(document(told))
    else:
        show(told)
    return exit_status(each.finding for each in told)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Keep to ourselves what libraries warn of: what concerns the user is a finding."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
