"""The user's own pool: started once however many ask, found afterwards, missed when broken."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_gpupool.client import manager_process
from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.discovery import from_runtime_file, is_alive
from jupyter_gpupool.client.embedded import EmbeddedPool, end, find_or_start
from jupyter_gpupool.client.manager_process import EmbeddedPlan, Health, health_of
from jupyter_gpupool.client.this_host import started_at
from jupyter_gpupool.pool.errors import Unavailable

pytestmark = pytest.mark.e2e
_FIRST_USE = """
import json, sys
from pathlib import Path
from jupyter_gpupool.client.embedded import find_or_start
from jupyter_gpupool.client.manager_process import EmbeddedPlan
plan = EmbeddedPlan(runtime_file=Path(sys.argv[1]), options=tuple(sys.argv[2:]))
print(find_or_start(plan).manager_pid)
"""
_PRIVATE_POOL = """
import sys, httpx
from pathlib import Path
from jupyter_gpupool.client.embedded import EmbeddedPool
address = EmbeddedPool(Path(sys.argv[1]), options=("--simulated=1",)).start()
headers = {"Authorization": f"Bearer {address.token}"}
claim = {"workers": {"min": 60, "max": 60}}
httpx.post(f"{address.url}/api/v1/claims", headers=headers, json=claim).raise_for_status()
print(address.manager_pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[EmbeddedPlan]:
    """A plan for a pool in a folder of its own, which is gone after the test."""
    folders = (f"--state={tmp_path / 'state'}", f"--agent-state={tmp_path / 'agent'}")
    options = (*folders, "--stop-all-on-exit", "--simulated=1")
    plan = EmbeddedPlan(runtime_file=tmp_path / "run" / "gpupool.json", options=options)
    yield plan
    if (address := from_runtime_file(plan.runtime_file)) is not None:
        _end(address)


def _end(address: PoolAddress) -> None:
    assert address.manager_pid is not None
    end(address.manager_pid, address.manager_started, 30)


def test_many_first_uses_start_one_manager(plan: EmbeddedPlan) -> None:
    """Twenty processes at the same moment get the same pool."""
    command = [sys.executable, "-c", _FIRST_USE, str(plan.runtime_file), *plan.options]
    users = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(20)]
    pids = {user.communicate(timeout=90)[0].strip() for user in users}
    address = find_or_start(plan)
    assert pids == {str(address.manager_pid)}


def test_files_of_the_pool_are_private(plan: EmbeddedPlan) -> None:
    """The runtime file holds a token, and the log is nobody else's business."""
    find_or_start(plan)
    modes = {path.stat().st_mode & 0o077 for path in plan.runtime_file.parent.iterdir()}
    assert modes == {0}


def test_dead_manager_is_started_again(plan: EmbeddedPlan) -> None:
    """After kill -9, the next use has a new one."""
    first = find_or_start(plan)
    assert first.manager_pid is not None
    os.kill(first.manager_pid, signal.SIGKILL)
    second = find_or_start(plan)
    assert second.manager_pid != first.manager_pid
    assert health_of(second) is Health.WELL
    _end(second)
    # Not even the agent that the first one had started, but not yet written down.
    assert [p for p in psutil.process_iter(["cmdline"]) if _is_agent_of(plan, p)] == []


def test_stranger_with_a_dead_managers_number_is_left_alone() -> None:
    """Numbers of processes come back."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        started = started_at(stranger.pid)
        assert started is not None
        end(stranger.pid, started - 1, 0)
        stranger.communicate(b"\n", timeout=30)
    assert stranger.returncode == 0


def _is_agent_of(plan: EmbeddedPlan, process: psutil.Process) -> bool:
    words = process.info["cmdline"] or []
    return (
        "jupyter_gpupool.agent" in words
        and plan.options[1].replace("agent-state", "state") in words
    )


def test_manager_that_cannot_start_is_quoted(plan: EmbeddedPlan, tmp_path: Path) -> None:
    """Its own last words are in the one line that the user sees."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    broken = EmbeddedPlan(runtime_file=plan.runtime_file, options=(f"--state={blocked / 'x'}",))
    with pytest.raises(Unavailable, match=r"ended while it was starting: .+") as failed:
        find_or_start(broken)
    assert "\n" not in str(failed.value)


def test_missing_libraries_are_named(plan: EmbeddedPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the command that installs them."""
    monkeypatch.setitem(manager_process._NEEDED, "no_such_module", "no-such-package")
    with pytest.raises(Unavailable, match=r'lacks no-such-package\. Run: pip install ".*\[all\]"'):
        find_or_start(plan)


def test_port_of_somebody_else_is_not_taken_for_a_manager(
    plan: EmbeddedPlan, said_by_us: dict[str, Any]
) -> None:
    """A manager that lives, and whose port nobody has: a pool is started."""
    plan.runtime_file.parent.mkdir(mode=0o700)
    plan.runtime_file.write_text(json.dumps(said_by_us))
    plan.runtime_file.chmod(0o600)
    assert find_or_start(plan).manager_pid != os.getpid()


def test_private_pool_ends_with_its_context(tmp_path: Path) -> None:
    """Its manager is gone, and so is its runtime file."""
    with EmbeddedPool(tmp_path, options=("--simulated=1",)) as embedded:
        assert embedded.address is not None
        pid = embedded.address.manager_pid
        assert pid is not None
        assert is_alive(pid)
    assert not is_alive(pid)
    assert not (tmp_path / "run" / "gpupool.json").exists()


def test_private_pool_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """Nobody is left to leave the context, and a claim that waits would hold the pool for ever."""
    words = ("-c", _PRIVATE_POOL, str(tmp_path))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, *words], **pipes) as owner:
        assert owner.stdout is not None
        manager = psutil.Process(int(owner.stdout.readline()))
        owner.kill()
    manager.wait(30)
    assert not [p for p in psutil.process_iter(["cmdline"]) if _names(p, tmp_path)]


def _names(process: psutil.Process, folder: Path) -> bool:
    return any(str(folder) in word for word in process.info["cmdline"] or [])
