"""What the words of a command mean, in `%gpupool` and in `jupyter gpupool` alike. Loads no pool.

Called by both: how numbers and bounds are read, and how a mistake becomes one sentence.
"""

import re
from collections.abc import Sequence
from itertools import islice

import click

from jupyter_gpupool.pool.errors import BadRequest

_BELOW_ZERO = re.compile(r"-\.?[0-9].*")
_BOUNDS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_PART = re.compile(r"[0-9]*\.[0-9]+")


class Commands(click.Group):
    """Commands to which `-1` is a number that is too small, and no option that they lack."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and its words: options first, then what click would take for options."""
        name, command, words = super().resolve_command(ctx, args)
        reads_itself = command is None or command.context_settings.get("ignore_unknown_options")
        if reads_itself or isinstance(command, click.Group):
            return name, command, words
        assert command is not None, "one that is none reads nothing"
        return name, command, _with_numbers_last(command, words)


def mistake_in_words(error: click.ClickException, otherwise: str) -> str:
    """One sentence on what is wrong with a line, and where to read how it is meant.

    Args:
        error: What click says.
        otherwise: The command to read about if click does not say which one it was.
    """
    context = error.ctx if isinstance(error, click.UsageError) else None
    said = " ".join(error.format_message().split()).removesuffix(".")
    return f"{said}. See: {context.command_path if context else otherwise} --help"


def bounds(text: str) -> tuple[int, int]:
    """Read "2" or "1-4": the least and the most.

    Raises:
        BadRequest: If it is neither.
    """
    match = _BOUNDS.fullmatch(text)
    if match is None:
        raise BadRequest(f"{text!r} is no number.", hint='Write for example 2, or "1-4".')
    return int(match[1]), int(match[2] or match[1])


def devices(text: str) -> tuple[int, int] | float:
    """Read "2", "1-4" or "0.5".

    Raises:
        BadRequest: If it is none of them.
    """
    if _PART.fullmatch(text):
        return float(text)
    try:
        return bounds(text)
    except BadRequest:
        hint = 'Write for example 2, "1-4", or 0.5 for a part of one.'
        raise BadRequest(f"{text!r} is no number of devices.", hint=hint) from None


def _with_numbers_last(command: click.Command, words: Sequence[str]) -> list[str]:
    """The same words for click, with all that is no option behind "--"."""
    if not any(map(_BELOW_ZERO.fullmatch, words)):
        return list(words)
    valued = _with_values(command)
    options: list[str] = []
    others: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            others.extend(left)
        elif not word.startswith("-") or _BELOW_ZERO.fullmatch(word):
            others.append(word)
        else:
            value = list(islice(left, 1 if word in valued else 0))
            options += [word, *value]
            if word in valued and not value:
                return options  # click says what it lacks
    return [*options, "--", *others]


def _with_values(command: click.Command) -> set[str]:
    """The names of the options that take the word behind them."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    return {name for each in options if not (each.is_flag or each.count) for name in each.opts}
