"""What the system shows and allows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.machine import (
    check_control_groups,
    check_loopback,
    judge_control_groups,
    judge_processes,
)
from jupyter_gpupool.cli.doctor.mounts import Mount

_ASK = """\
from jupyter_gpupool.cli.doctor.machine import check_loopback
print(*(found.reference for found in check_loopback(None)))
"""


def proc(*options: str) -> list[Mount]:
    return [Mount(Path("/"), "ext4", ("rw",)), Mount(Path("/proc"), "proc", ("rw", *options))]


def test_loopback_that_works_is_well(sees):
    """As the tests need it."""
    (found,) = check_loopback(sees())
    assert found.severity is Severity.WELL


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes networks")
def test_loopback_that_is_down_is_a_problem():
    """In a network of its own, where nobody has brought it up."""
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", _ASK],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["no-loopback"]


@pytest.mark.parametrize(
    ("options", "is_root", "severity"),
    [
        ((), False, Severity.WELL),
        (("hidepid=off",), False, Severity.WELL),
        (("hidepid=invisible",), False, Severity.NOTE),
        (("hidepid=2",), True, Severity.WELL),
    ],
)
def test_hidden_processes_are_a_note(options, *, is_root: bool, severity: Severity):
    """But not to root, who sees them."""
    assert judge_processes(proc(*options), is_root=is_root).severity is severity


def test_control_groups_that_cannot_be_made_are_a_note(open_folder: Path, as_nobody):
    """The agent does without."""
    assert judge_control_groups(open_folder).severity is Severity.WELL
    with as_nobody():
        closed = judge_control_groups(Path("/sys/fs/cgroup"))
    assert (closed.severity, judge_control_groups(None).severity) == (Severity.NOTE, Severity.NOTE)


def test_only_root_is_told_of_control_groups(sees, as_nobody):
    """Nobody else's agent makes any."""
    with as_nobody():
        assert list(check_control_groups(sees())) == []
