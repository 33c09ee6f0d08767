"""Every example runs, as it stands, against a real pool."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    """An empty folder would pass the test below."""
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, script_environment: dict[str, str]) -> None:
    """It prints something and complains of nothing."""
    done = subprocess.run(
        [sys.executable, str(example)],
        env=script_environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr
    assert "Traceback" not in done.stderr
