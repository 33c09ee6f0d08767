"""The two commands of the README, up to the moment at which pip has installed everything."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def make(tmp_path):
    """Runs make with an environment of the test's own, whose Python is there already."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(shutil.which("true"))

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = ["make", "--no-print-directory", f"VENV={tmp_path / 'venv'}", *arguments]
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )

    return run


@pytest.mark.parametrize("command", ["demo", "test"])
def test_silence_is_announced_before_it_begins(make, command):
    """Making the environment is a part of it."""
    first, *then = make("-n", command).stdout.splitlines()
    assert first.startswith("echo 'Installing jupyter_gpupool")
    assert any("-m venv" in line for line in then)


@pytest.mark.parametrize("stamp", ["demo", "test"])
def test_failed_installation_is_tried_again(make, tmp_path, stamp):
    """It says that pip has told why, and nothing counts as installed."""
    done = make("PIP=false", f"{tmp_path / 'venv'}/{stamp}.stamp")
    announced, told = done.stdout.splitlines()
    assert "not a word until it is done" in announced
    assert told.startswith("Nothing is installed, for the reason that pip gives above")
    assert done.returncode != 0
    assert not list((tmp_path / "venv").glob("*.stamp"))


def test_machine_without_a_python_of_ours_is_told_which(make, tmp_path):
    """In one sentence."""
    done = make("PYTHON=", f"VENV={tmp_path / 'none'}", "demo")
    assert "needs Python 3.11, 3.12 or 3.13, and there is none here." in done.stdout
    assert not (tmp_path / "none").exists()
