"""Whether others can run this Python."""

from pathlib import Path

import pytest

from jupyter_gpupool.cli.doctor.finding import Severity
from jupyter_gpupool.cli.doctor.interpreter import closed_to_others, judge_interpreter


@pytest.fixture
def python(open_folder: Path) -> Path:
    """An interpreter that all can run, a folder below one that all can pass."""
    path = open_folder / "env" / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.touch()
    for each, mode in ((path, 0o755), (path.parent, 0o755), (path.parent.parent, 0o755)):
        each.chmod(mode)
    return path


def test_a_python_that_all_can_reach_is_open(python: Path):
    """Each folder on the way can be passed."""
    assert closed_to_others([python]) is None


@pytest.mark.parametrize(("steps", "mode"), [(0, 0o700), (0, 0o754), (1, 0o750), (2, 0o700)])
def test_the_first_closed_path_is_told(python: Path, steps: int, mode: int):
    """The interpreter itself, or a folder above it."""
    closed = (python, *python.parents)[steps]
    closed.chmod(mode)
    assert closed_to_others([python]) == closed


@pytest.mark.parametrize(
    ("closed", "is_root", "severity"),
    [
        (None, True, Severity.WELL),
        (Path("/root"), True, Severity.WARNING),
        (Path("/home/me"), False, Severity.NOTE),
    ],
)
def test_it_matters_to_root(closed: Path | None, *, is_root: bool, severity: Severity):
    """Whose agent runs claims as their users."""
    assert judge_interpreter(closed, is_root=is_root).severity is severity
