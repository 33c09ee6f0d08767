"""How bad it is all together."""

import pytest

from jupyter_gpupool.cli.doctor.finding import (
    ExitStatus,
    Finding,
    exit_status,
    note,
    problem,
    unknown,
    warning,
    well,
    worst,
)

WELL = well("w", "It is well.")
NOTE, WARNING = note("n", "Know this.", "Nothing."), warning("a", "Beware.", "Mend it.")
UNKNOWN, PROBLEM = unknown("u", "Not seen.", "Look."), problem("p", "It fails.", "Mend it.")


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ((), ExitStatus.WELL),
        ((WELL, NOTE), ExitStatus.WELL),
        ((WELL, WARNING, NOTE), ExitStatus.WARNING),
        ((UNKNOWN, WARNING), ExitStatus.UNKNOWN),
        ((PROBLEM, UNKNOWN, WARNING, NOTE), ExitStatus.PROBLEM),
    ],
)
def test_the_gravest_finding_decides_the_exit_status(findings, status):
    """A note stops no script; a problem outweighs what could not be seen."""
    assert exit_status(findings) is status


@pytest.mark.parametrize("found", [WELL, NOTE, WARNING, UNKNOWN, PROBLEM])
def test_a_finding_alone_is_the_worst(found: Finding):
    """Each kind is told as itself."""
    assert worst([WELL, found]) is found.severity
