"""`stop` against a real private pool: it ends with all it started, and never under a claim."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from jupyter_gpupool.cli.stop import stop_pool
from jupyter_gpupool.client.discovery import from_runtime_file
from jupyter_gpupool.client.embedded import find_or_start
from jupyter_gpupool.client.manager_process import EmbeddedPlan
from jupyter_gpupool.client.this_host import ThisHost
from jupyter_gpupool.protocol.runtime_file import runtime_file_name

pytestmark = pytest.mark.e2e
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[EmbeddedPlan]:
    """Of a pool where this user's own would be, were `tmp_path` Jupyter's runtime folder."""
    config = tmp_path / "config"
    config.mkdir()
    # Devices of its own, which no other pool of this machine can hold.
    said = json.dumps({"AgentApp": {"simulated_host": str(tmp_path)}})
    (config / "jupyter_gpupool_config.json").write_text(said)
    folders = (f"--state={tmp_path / 'state'}", f"--agent-state={tmp_path / 'agent'}")
    plan = EmbeddedPlan(
        runtime_file=tmp_path / runtime_file_name(ThisHost.read().mark),
        options=(*folders, "--simulated=1"),
        config_folder=config,
    )
    yield plan
    if (address := from_runtime_file(plan.runtime_file)) is not None:
        stop_pool(address, release=True)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command of this user, to its end."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GPUPOOL_")}

    def start(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "jupyter_gpupool.cli", *arguments],
            env={**kept, "JUPYTER_RUNTIME_DIR": str(tmp_path), **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start


def test_unused_pool_ends_with_its_agent(plan: EmbeddedPlan, run: Run, tmp_path: Path) -> None:
    """Nothing of it is left, and stopping again is no error."""
    find_or_start(plan)
    done = run("stop")
    assert (done.returncode, done.stderr) == (0, "")
    assert "has ended" in done.stdout
    assert _processes(tmp_path) == []
    again = run("stop")
    assert (again.returncode, "No private pool" in again.stdout) == (0, True)


def test_pool_with_claims_is_not_stopped(plan: EmbeddedPlan, run: Run) -> None:
    """One sentence names them and the way out, and the pool goes on."""
    find_or_start(plan)
    assert run("claim", "1", "--name", "dear", "--detach").returncode == 0
    done = run("stop")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "1 claim (dear) lives in your private pool." in done.stderr
    assert "stop --release" in done.stderr
    assert run("claims").returncode == 0
    assert from_runtime_file(plan.runtime_file) is not None


def test_claims_are_given_back_when_told_to(plan: EmbeddedPlan, run: Run, tmp_path: Path) -> None:
    """One that runs and one that waits; then everything ends."""
    find_or_start(plan)
    for name in ("one", "two"):
        assert run("claim", "1", "--name", name, "--detach").returncode == 0
    done = run("stop", "--release", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["stopped"], len(told["released"])) == (0, True, 2)
    assert _processes(tmp_path) == []


def test_pool_that_is_named_is_left_alone(run: Run) -> None:
    """It is an organisation's, whatever its token allows."""
    done = run("stop", GPUPOOL_URL="http://127.0.0.1:9", GPUPOOL_TOKEN="t")
    assert (done.returncode, "No private pool" in done.stdout) == (0, True)


def _processes(folder: Path) -> list[str]:
    every = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return [" ".join(words) for words in every if any(str(folder) in word for word in words)]
