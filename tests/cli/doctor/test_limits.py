"""Limits of this process, which what it starts inherits."""

import resource
import subprocess
import sys

import pytest

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.limits import judge_open_files, judge_processes

_ASK = """\
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
resource.setrlimit(resource.RLIMIT_NPROC, (300, 300))
from jupyter_gpupool.cli.doctor.limits import check_limits
print(*(found.reference for found in check_limits(None)))
"""


@pytest.mark.parametrize(
    ("limit", "severity"),
    [
        (resource.RLIM_INFINITY, Severity.WELL),
        (4096, Severity.WELL),
        (4095, Severity.WARNING),
        (63, Severity.PROBLEM),
    ],
)
def test_few_open_files_are_a_warning_and_too_few_a_problem(limit: int, severity: Severity):
    """The number is told."""
    assert judge_open_files(limit).severity is severity


@pytest.mark.parametrize(
    ("limit", "severity"),
    [(512, Severity.WELL), (511, Severity.WARNING), (63, Severity.PROBLEM)],
)
def test_few_processes_are_a_warning_and_too_few_a_problem(limit: int, severity: Severity):
    """Threads count too."""
    assert judge_processes(limit).severity is severity


def test_a_process_with_low_limits_finds_them():
    """As a batch system or a container sets them."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["open-files-limit-too-low", "processes-limit-low"]
