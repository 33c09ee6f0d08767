"""The words of a `%gpupool` line: how they are read and how they are completed. Pure but for names.

Called by `commands` and `cell_command`, through click.
"""

import keyword
from collections.abc import Sequence

import click

from jupyter_gpupool.pool.request import OnIdle

from .names import known_names

HELP = {"help_option_names": ["-h", "--help"], "terminal_width": 100}
"""How help is asked for, and its width: a notebook has no terminal to ask."""

ON_IDLE = [each.value for each in OnIdle]
"""What may become of a claim that is idle."""


def variables(text: str) -> tuple[str, ...]:
    """Read "a,b": names of variables.

    Raises:
        click.BadParameter: If one is none, or is there twice.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise click.BadParameter(f"{name!r} is no name of a variable.")
    if not names or len(set(names)) != len(names):
        raise click.BadParameter(f'{text!r} names no variables. Write for example "a,b".')
    return names


def cluster_and_client(text: str) -> tuple[str, ...]:
    """Read "a,b" or "a": a variable for the cluster, and one for its client.

    Raises:
        click.BadParameter: If it is neither.
    """
    names = variables(text)
    if len(names) > 2:  # noqa: PLR2004 - a cluster and a client
        raise click.BadParameter(f'{text!r} is more than two names: "cluster,client".')
    return names


def split_last(words: Sequence[str], usage: str) -> tuple[str | None, str]:
    """A claim's name, which may be left out, and the word after it.

    Raises:
        click.UsageError: If it is neither one word nor two.
    """
    if len(words) not in (1, 2):
        raise click.UsageError(f"It is: {usage}.", ctx=click.get_current_context())
    return (words[0] if len(words) > 1 else None), words[-1]


def claims(_context: click.Context, _parameter: click.Parameter, begun: str) -> Sequence[str]:
    """Names of claims that begin so."""
    return _beginning(known_names().claims, begun)


def models(_context: click.Context, _parameter: click.Parameter, begun: str) -> Sequence[str]:
    """Models of devices that begin so."""
    return _beginning(known_names().models, begun)


def environments(_context: click.Context, _parameter: click.Parameter, begun: str) -> Sequence[str]:
    """Names of environments that begin so."""
    return _beginning(known_names().environments, begun)


def _beginning(names: Sequence[str], begun: str) -> Sequence[str]:
    return [name for name in names if name.lower().startswith(begun.lower())]
