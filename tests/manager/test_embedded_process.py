"""The embedded manager as a process: its files, its agent, its end."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest
from manager_harness.processes import WITHIN_S, Manager, agent_token, bearer, port_of
from waiting import eventually

from jupyter_gpupool.manager import app
from jupyter_gpupool.manager.runtime_file import this_host


def test_embedded_manager_writes_and_removes_its_runtime_file(start_manager, tmp_path):
    """0600, with all a client needs; and nothing is left of it and its agent."""
    runtime_file = tmp_path / "run" / "gpupool.json"
    manager = _embedded(start_manager, runtime_file)
    told = json.loads(manager.await_file(runtime_file))
    assert told["manager_pid"] == manager.process.pid
    assert runtime_file.stat().st_mode & 0o077 == 0
    with httpx.Client(base_url=told["url"], headers=bearer(told["token"])) as client:
        assert client.get("/health").json() == {"status": "ok"}
        eventually(lambda: client.get("/api/v1/hosts").json(), WITHIN_S)
    agent = int((tmp_path / "agent" / "agent.lock").read_text().split()[0])
    assert told["token"] not in _command_lines()
    assert manager.end() == 0
    assert not runtime_file.exists()
    assert not _is_alive(agent)


def test_agent_survives_a_killed_manager_and_joins_the_next(start_manager, tmp_path):
    """Same agent, same host: nothing dies with its parent."""
    runtime_file = tmp_path / "gpupool.json"
    first = _embedded(start_manager, runtime_file)
    told = json.loads(first.await_file(runtime_file))
    with httpx.Client(base_url=told["url"], headers=bearer(told["token"])) as client:
        host = eventually(lambda: client.get("/api/v1/hosts").json(), WITHIN_S)[0]["id"]
    agent = int((tmp_path / "agent" / "agent.lock").read_text().split()[0])
    first.end(signal.SIGKILL)
    assert _is_alive(agent)
    runtime_file.unlink()
    second = _embedded(start_manager, runtime_file)
    told = json.loads(second.await_file(runtime_file))
    with httpx.Client(base_url=told["url"], headers=bearer(told["token"])) as client:
        hosts = partial(client.get, "/api/v1/hosts")
        eventually(lambda: "connected" in [h["phase"] for h in hosts().json()], WITHIN_S)
        assert [h["id"] for h in client.get("/api/v1/hosts").json()] == [host]
    assert int((tmp_path / "agent" / "agent.lock").read_text().split()[0]) == agent
    assert second.end() == 0, second.log.read_text()
    eventually(lambda: not _is_alive(agent), WITHIN_S)


def test_embedded_manager_leaves_another_pools_agent_alone(start_manager, tmp_path):
    """It holds the folder that ours would use: it is neither ended nor taken over."""
    other = start_manager("--port=0")
    port = port_of(other, tmp_path / "state" / "admin-token")
    command = [sys.executable, "-m", "jupyter_gpupool.agent", f"--state={tmp_path / 'agent'}"]
    with (tmp_path / "agent.log").open("wb") as log:
        agent = subprocess.Popen(
            [*command, f"--join=http://127.0.0.1:{port}", "--simulated=1"],
            env=os.environ | {"GPUPOOL_TOKEN": agent_token(port, tmp_path)},
            stdout=log,
            stderr=log,
        )
    try:
        eventually((tmp_path / "agent" / "agent.lock").exists, WITHIN_S)
        options = ("--embedded", "--simulated=1", f"--agent-state={tmp_path / 'agent'}")
        place = f"--runtime-file={tmp_path / 'gpupool.json'}"
        manager = start_manager(*options, place, "--stop-all-on-exit", folder=tmp_path / "own")
        manager.await_file(tmp_path / "gpupool.json")
        assert manager.end() == 0
        assert agent.poll() is None, (tmp_path / "agent.log").read_text()
    finally:
        agent.kill()
        agent.wait(WITHIN_S)


def test_embedded_manager_heeds_no_other_managers_settings(start_manager, tmp_path, monkeypatch):
    """Address, TLS, database and folder of the configuration file are the organisation's."""
    (tmp_path / "config").mkdir()
    settings = {
        "ip": "0.0.0.0",
        "port": 1,
        "certfile": "/nix",
        "database_url": "sqlite:////nix/db",
        "state_folder": "/nix",
    }
    lines = [f"c.ManagerApp.{name} = {value!r}" for name, value in settings.items()]
    (tmp_path / "config" / "jupyter_gpupool_config.py").write_text("\n".join(lines))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    runtime_file = tmp_path / "gpupool.json"
    told = json.loads(_embedded(start_manager, runtime_file).await_file(runtime_file))
    assert told["url"].startswith("http://127.0.0.1:")
    assert (tmp_path / "state" / "manager.sqlite").exists()


@pytest.mark.parametrize("by", ["command line", "configuration file"])
def test_embedded_manager_heeds_a_policy_of_the_command_line_alone(
    start_manager, tmp_path, monkeypatch, by
):
    """Who names one there means this pool; the configuration file's is the organisation's."""
    file, runtime_file = tmp_path / "policy.toml", tmp_path / "gpupool.json"
    file.write_text('[queues.own]\nusers = ["*"]\n')
    (tmp_path / "config").mkdir()
    said = (f"--policy={file}",) if by == "command line" else ()
    if not said:
        line = f"c.ManagerApp.policy_file = {str(file)!r}"
        (tmp_path / "config" / "jupyter_gpupool_config.py").write_text(line)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    told = json.loads(_embedded(start_manager, runtime_file, *said).await_file(runtime_file))
    with httpx.Client(base_url=f"{told['url']}/api/v1", headers=bearer(told["token"])) as client:
        assert client.get("/policy").json()["revision"] == len(said)


def test_embedded_folders_are_nobody_elses(monkeypatch):
    """Neither a standalone manager's or agent's, nor another host's on the same home."""
    monkeypatch.setattr(app, "default_state_folder", lambda: Path("/base/manager"))
    folder = app.default_embedded_folder()
    assert folder == Path("/base/embedded") / this_host()


def test_unused_embedded_manager_ends_by_itself(start_manager, tmp_path):
    """And takes its agent along."""
    runtime_file = tmp_path / "gpupool.json"
    manager = _embedded(start_manager, runtime_file, "--idle-exit-after=1")
    manager.await_file(runtime_file)
    assert manager.process.wait(WITHIN_S) == 0
    assert not runtime_file.exists()


def _embedded(start_manager, runtime_file: Path, *more: str) -> Manager:
    options = ("--embedded", "--simulated=1", "--stop-all-on-exit")
    return start_manager(*options, f"--runtime-file={runtime_file}", *more)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def _command_lines() -> str:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)
