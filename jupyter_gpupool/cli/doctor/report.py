"""How the doctor tells what it found: tables for people, one document for programs."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from jupyter_gpupool.cli.output import show_table, table
from jupyter_gpupool.pool.units import plural

from .examination import Told
from .finding import Finding, Severity, exit_status, worst
from .sight import Group

if TYPE_CHECKING:
    from rich.table import Table

_COLOURS = {
    Severity.WELL: "green",
    Severity.NOTE: "cyan",
    Severity.WARNING: "yellow",
    Severity.UNKNOWN: "magenta",
    Severity.PROBLEM: "bold red",
}
"""Beside the word, never instead of it."""


def document(told: Sequence[Told]) -> dict[str, Any]:
    """Everything for a program."""
    findings = [each.finding for each in told]
    return {
        "worst": worst(findings).value,
        "exit_status": exit_status(findings).value,
        "findings": [_plain(each) for each in told],
    }


def show(told: Sequence[Told]) -> None:
    """Everything for a person: a table a group, then how bad it is."""
    for group in Group:
        findings = [each.finding for each in told if each.group is group]
        if findings:
            click.echo(f"{group.value}")
            show_table(findings_table(findings), "")
            click.echo()
    click.echo(summary([each.finding for each in told]))


def findings_table(findings: Sequence[Finding]) -> "Table":
    """One row a finding, and below it how to mend it."""
    from rich.text import Text  # noqa: PLC0415 - 0.05 s that `--help` need not pay

    made = table("HOW", "CHECK", "WHAT")
    for found in findings:
        word = Text(found.severity.value, style=_COLOURS[found.severity])
        made.add_row(word, Text(found.reference), Text(_printable(found.what)))
        if found.mend:
            made.add_row("", "", Text(f"To mend: {_printable(found.mend)}"))
    return made


def summary(findings: Sequence[Finding]) -> str:
    """How many of each kind, worst first."""
    counts = Counter(found.severity for found in findings)
    bad = [
        plural(counts[each], each.value)
        for each in reversed(Severity)
        if counts[each] and each is not Severity.WELL
    ]
    return f"{', '.join(bad) or 'Nothing to mend'}; {counts[Severity.WELL]} well."


def _printable(text: str) -> str:
    """What any terminal can show: a path may hold anything, and so may words from afar."""
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    encoding = sys.stdout.encoding or "utf-8"
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _plain(told: Told) -> dict[str, str]:
    return {
        "group": told.group.value,
        "reference": told.finding.reference,
        "severity": told.finding.severity.value,
        "what": told.finding.what,
        "mend": told.finding.mend,
    }
