"""Runs the command line as its user does: a process, its words, its exit status."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def nobody_there(tmp_path: Path) -> dict[str, str]:
    """An environment that names a pool where nobody listens."""
    return {"GPUPOOL_URL": "http://127.0.0.1:9", "GPUPOOL_TOKEN": "t", "HOME": str(tmp_path)}


@pytest.fixture
def run(nobody_there: dict[str, str]) -> Run:
    """Run a command to its end; by default against a pool that does not answer."""

    def start(
        *arguments: str, environment: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GPUPOOL_")}
        return subprocess.run(
            [sys.executable, "-m", "jupyter_gpupool.cli", *arguments],
            env={**kept, **(nobody_there if environment is None else environment)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return start
