"""What a check has to say: one sentence, how bad it is, and how to mend it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum


class Severity(Enum):
    """How bad it is, mildest first; the value is the word that people and programs read."""

    WELL = "well"
    NOTE = "note"
    """Worth knowing; nothing fails because of it."""
    WARNING = "warning"
    """It works, until something more goes wrong or somebody else is concerned."""
    UNKNOWN = "unknown"
    """The doctor itself could not look."""
    PROBLEM = "problem"
    """Something will not work."""


class ExitStatus(IntEnum):
    """How bad it is all together, for scripts."""

    WELL = 0
    PROBLEM = 1
    UNKNOWN = 2
    WARNING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        reference: A stable kebab-case name.
        what: One sentence on how it is.
        mend: One sentence on what to do, "" where there is nothing to do.
    """

    reference: str
    severity: Severity
    what: str
    mend: str = ""


def well(reference: str, what: str) -> Finding:
    """It is as it should be."""
    return Finding(reference=reference, severity=Severity.WELL, what=what)


def note(reference: str, what: str, mend: str) -> Finding:
    """Worth knowing."""
    return Finding(reference=reference, severity=Severity.NOTE, what=what, mend=mend)


def warning(reference: str, what: str, mend: str) -> Finding:
    """It works, for now."""
    return Finding(reference=reference, severity=Severity.WARNING, what=what, mend=mend)


def problem(reference: str, what: str, mend: str) -> Finding:
    """Something will not work."""
    return Finding(reference=reference, severity=Severity.PROBLEM, what=what, mend=mend)


def unknown(reference: str, what: str, mend: str) -> Finding:
    """It could not be looked at."""
    return Finding(reference=reference, severity=Severity.UNKNOWN, what=what, mend=mend)


def worst(findings: Iterable[Finding]) -> Severity:
    """The gravest of all."""
    order = list(Severity)
    return max((found.severity for found in findings), key=order.index, default=Severity.WELL)


def exit_status(findings: Iterable[Finding]) -> ExitStatus:
    """What a script is told: notes are no reason to stop."""
    return {
        Severity.PROBLEM: ExitStatus.PROBLEM,
        Severity.UNKNOWN: ExitStatus.UNKNOWN,
        Severity.WARNING: ExitStatus.WARNING,
    }.get(worst(findings), ExitStatus.WELL)
