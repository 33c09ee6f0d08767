"""An embedded manager's head start: the agent that is begun before the manager's libraries."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.manager.local_agent import is_held

pytestmark = pytest.mark.e2e


def test_manager_that_cannot_start_leaves_no_agent(tmp_path: Path) -> None:
    """What was begun for it is ended with it."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "manager.sqlite").write_bytes(b"no database" * 1000)
    options = [f"--state={tmp_path}/state", f"--agent-state={tmp_path}/agent", "--simulated=1"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "jupyter_gpupool.manager", "--embedded"),
            *(f"--runtime-file={tmp_path}/run.json", *options),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert not is_held(tmp_path / "agent")


def test_agent_of_the_head_start_is_the_pools_only_one(tmp_path: Path) -> None:
    """It is kept like any other, and ends with the pool."""
    with EmbeddedPool(tmp_path, options=("--simulated=1",)):
        _wait_until_held(tmp_path / "agent")
        started = (tmp_path / "state" / "agent-process").read_text().splitlines()
        holder = (tmp_path / "agent" / "agent.lock").read_text().split()[0]
        assert [line.split()[0] for line in started] == [holder]
    assert not is_held(tmp_path / "agent")


def _wait_until_held(state: Path) -> None:
    deadline = time.monotonic() + 30
    while not is_held(state):
        assert time.monotonic() < deadline, "no agent in 30 s"
        time.sleep(0.02)
