"""What an admin reads of a policy: its problems, differences and warnings, one line each."""

from typing import TYPE_CHECKING

import click

from jupyter_gpupool.cli.output import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jupyter_gpupool.protocol.policy_views import DiffView, PolicyProblem, RevisionView

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def problem_lines(name: str, problems: "Iterable[PolicyProblem]") -> "Iterator[str]":
    """Where and what is wrong, as compilers say it: FILE:LINE: KEY: MESSAGE."""
    for problem in problems:
        place = name if problem.line is None else f"{name}:{problem.line}"
        key = "" if problem.key in problem.message else f"{problem.key}: "
        yield f"{place}: {key}{problem.message}"


def diff_text(diff: "DiffView") -> str:
    """A comparison line by line; coloured where it is shown on a terminal."""
    return "\n".join(
        click.style(line, fg=_COLOURS.get(line[:1])) for line in diff.text.splitlines()
    )


def warn(warnings: "Iterable[str]") -> None:
    """Tell what an admin should know, beside what was asked for."""
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


def revision_line(view: "RevisionView") -> str:
    """Which revision it is, when, by whom and why."""
    if view.at is None:
        return f"Revision {view.revision}: nobody has applied a policy."
    comment = f": {view.comment}" if view.comment else ""
    restores = "" if view.restores is None else f", back to revision {view.restores}"
    return f"Revision {view.revision}, {moment(view.at)} by {view.by}{restores}{comment}"
