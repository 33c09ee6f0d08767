"""The embedded pool's runtime file: damaged, stale or open to others."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_harness.processes import carrying, kill_all

from jupyter_gpupool.client.discovery import runtime_file

_SCRIPT = """
import jupyter_gpupool as gpupool
from distributed import Client
with gpupool.claim(gpus=1) as cluster, Client(cluster) as client:
    print(client.submit(sum, [1, 2, 3]).result(timeout=30))
"""


@pytest.fixture
def place(folders: Callable[[], Path]) -> Iterator[Path]:
    """A private home with an empty runtime folder; what is started from it ends with the test."""
    folder = folders()
    (folder / "run").mkdir(mode=0o700)
    (folder / "config").mkdir()
    # Root's own pool would be the machine's, in /var/lib.
    (folder / "config" / "jupyter_gpupool_config.py").write_text(
        f"c.ManagerApp.state_folder = {str(folder / 'manager')!r}\n"
        f"c.ManagerApp.agent_state_folder = {str(folder / 'agent')!r}\n"
        f"c.AgentApp.simulated_host = {folder.name!r}\n"
    )
    yield folder
    while left := carrying(f"GPUPOOL_TEST_POOL={folder}"):
        kill_all(left)


def _claim(place: Path) -> "subprocess.CompletedProcess[str]":
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPOOL_", "JUPYTER_"))}
    own = {
        "HOME": str(place),
        "JUPYTER_RUNTIME_DIR": str(place / "run"),
        "JUPYTER_CONFIG_DIR": str(place / "config"),
        "GPUPOOL_TEST_POOL": str(place),
    }
    return subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={**kept, **own},
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _write(place: Path, text: str, mode: int = 0o600) -> Path:
    path = place / "run" / runtime_file().name
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    "text",
    ['{"url": "http://127', '{"url": 1, "token": [], "manager_pid": "x"}'],
    ids=["cut off", "wrong types"],
)
def test_damaged_runtime_file_is_replaced(place: Path, text: str) -> None:
    """A pool is started and the claim works."""
    path = _write(place, text)
    done = _claim(place)
    assert (done.returncode, done.stdout.strip()) == (0, "6"), done.stderr
    assert json.loads(path.read_text())["manager_pid"]


def test_runtime_file_of_a_dead_manager_is_replaced(place: Path) -> None:
    """Its pid belongs to nobody; a new pool is started."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    values = {"url": "http://127.0.0.1:1", "token": "gpt_old", "manager_pid": gone.pid}
    _write(place, json.dumps(values))
    done = _claim(place)
    assert (done.returncode, done.stdout.strip()) == (0, "6"), done.stderr


def test_runtime_file_that_others_may_read_is_refused(place: Path) -> None:
    """One line that says what to do; the token in it is not used."""
    _write(place, json.dumps({"url": "http://127.0.0.1:1", "token": "x", "manager_pid": 1}), 0o644)
    done = _claim(place)
    assert done.returncode != 0
    assert runtime_file().name in done.stderr.strip().splitlines()[-1]
