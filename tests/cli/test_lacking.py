"""A command whose packages are not installed says so in one line."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
from jupyter_gpupool.cli.root import run
sys.modules[sys.argv[1]] = None
sys.exit(run(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("distributed", ("demo",), "[all]"),
        ("fastapi", ("manager", "--ip=127.0.0.1", "--port=0"), "[manager]"),
    ],
)
def test_missing_package_is_one_line(package: str, command: tuple[str, ...], extra: str) -> None:
    """With what to install; the status is 1."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, package, *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert package in done.stderr
    assert extra in done.stderr
