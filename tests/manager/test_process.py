"""The manager as a process: how it starts, refuses to, ends, and what a kill leaves."""

import asyncio
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import httpx
import pytest

from jupyter_gpupool.manager import app
from jupyter_gpupool.manager.runtime_file import this_host

_WITHIN_S = 30
_BODY = {"workers": {"min": 1, "max": 1}}


class Manager:
    """One manager process."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.log = folder, folder / "log"
        command = [sys.executable, "-m", "jupyter_gpupool.manager", f"--state={folder / 'state'}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*command, *options], stdout=log, stderr=log)

    def await_file(self, path: Path) -> str:
        """The text of a file that it writes once it listens."""
        deadline = time.monotonic() + _WITHIN_S
        while not path.exists() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert path.exists(), self.log.read_text()
        return path.read_text()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal it and wait."""
        self.process.send_signal(number)
        return self.process.wait(_WITHIN_S)


@pytest.fixture
def start(tmp_path):
    """Starts managers, and ends what is left of them."""
    started = []

    def start_one(*options: str, folder: Path = tmp_path) -> Manager:
        folder.mkdir(exist_ok=True)
        started.append(Manager(folder, *options))
        return started[-1]

    yield start_one
    for manager in started:
        if manager.process.poll() is None:
            # Killed, an embedded one would leave its agent for ten minutes.
            manager.end()


def test_first_start_leaves_an_admin_token(start, tmp_path):
    """In a 0600 file of a 0700 folder; and a signal ends it with 0."""
    port = _free_port()
    manager = start(f"--port={port}")
    token = manager.await_file(tmp_path / "state" / "admin-token")
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=_bearer(token)) as client:
        assert client.get("/api/v1/status").json()["role"] == "admin"
    assert (tmp_path / "state" / "admin-token").stat().st_mode & 0o077 == 0
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    assert manager.end() == 0
    assert token not in manager.log.read_text()


def test_manager_takes_all_the_files_that_its_host_allows(start, tmp_path):
    """Each connection costs one."""
    manager = start("--port=0")
    manager.await_file(tmp_path / "state" / "admin-token")
    soft, hard = resource.prlimit(manager.process.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, 1 << 20)


def test_second_manager_on_a_state_folder_is_refused(start, tmp_path):
    """One sentence that names the first one's pid."""
    first = start("--port=0")
    first.await_file(tmp_path / "state" / "admin-token")
    second = start("--port=0")
    assert second.process.wait(_WITHIN_S) == 1
    said = [line for line in second.log.read_text().splitlines() if not line.startswith("{")]
    folder = tmp_path / "state"
    assert len(said) == 1
    assert f"Another manager (pid {first.process.pid}) uses the state folder {folder}." in said[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ip=0.0.0.0"], "does not listen on 0.0.0.0 without TLS"),
        (["--ip=localhost"], "is no IP address"),
        (["--certfile=/nix", "--keyfile=/nix"], "cannot be used: No such file"),
        (["--database=sqlite:////nix/db"], "The database cannot be opened"),
        (["--ManagerApp.longest_life=never"], "is not a time"),
        (["--ManagerApp.longest_keep_alive=0"], "is not a time"),
        (["--port=99999"], "port"),
        (["--policy=/nix/p.toml"], "The policy file /nix/p.toml cannot be read: No such file"),
        (["--ManagerApp.host_lost_after_s=0"], "host_lost_after_s"),
        (
            ["--database=postgresql+psycopg://u:secret@h/db"],
            "the Python package psycopg is missing",
        ),
    ],
)
def test_what_cannot_start_says_so_in_one_line(start, options, words):
    """No traceback for a mistake in the settings."""
    manager = start("--port=0", *options)
    assert manager.process.wait(_WITHIN_S) == 1
    [line] = manager.log.read_text().splitlines()
    assert words in line


def test_wrong_policy_stops_the_start_with_its_key(start, tmp_path):
    """Rather than a pool that nobody meant."""
    (tmp_path / "policy.toml").write_text("[queues.a]\nparent = 'b'")
    manager = start("--port=0", f"--policy={tmp_path / 'policy.toml'}")
    assert manager.process.wait(_WITHIN_S) == 1
    [line] = manager.log.read_text().splitlines()
    assert 'The parent "b" of queue "a" is unknown.' in line


def test_policy_file_wins_at_each_start(start, tmp_path):
    """What an admin applied meanwhile stays in the history, and they were warned."""
    file, token = tmp_path / "policy.toml", tmp_path / "state" / "admin-token"
    file.write_text('[queues.filed]\nusers = ["*"]\n')
    for restart in range(2):
        port = _free_port()
        manager = start(f"--port={port}", f"--policy={file}")
        bearer = _bearer(manager.await_file(token))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=bearer) as client:
            _await(partial(_answers, client))
            assert client.get("/policy").json()["queues"][0]["name"] == "filed"
            body = {"source": '[queues.sent]\nusers = ["*"]\n', "comment": "over the API"}
            [warning] = client.post("/policy/apply", json=body).json()["warnings"]
            made = client.get("/policy/revisions").json()
        assert f"policy file {file} says something else" in warning
        told = [(each["by"], each["comment"]) for each in made]
        both = [("admin", "over the API"), ("manager", f"At its start, from {file}.")]
        assert told == both * (restart + 1)
        assert manager.end() == 0


@pytest.mark.parametrize("file", ["", "[queues.old]\nwish = 3\n"], ids=["no file", "as stored"])
def test_stored_policy_that_is_refused_now_is_told_and_stops_nothing(start, tmp_path, file):
    """As after an upgrade: the last one that is understood holds, until a corrected file comes."""
    port, state = _free_port(), tmp_path / "state"
    _start_with_policy(start, tmp_path, '[queues.kept]\nusers = ["*"]\n').end()
    with sqlite3.connect(state / "manager.sqlite") as database:
        wrong = "insert into policies (revision, at, by, source) select 2, at, by, ? from policies"
        database.execute(wrong, ["[queues.old]\nwish = 3\n"])
    database.close()
    manager = _start_with_policy(start, tmp_path, file, f"--port={port}")
    bearer = _bearer((state / "admin-token").read_text())
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=bearer) as client:
        _await(partial(_answers, client))
        assert client.get("/policy").json()["revision"] == 1
        assert "wish" in client.get("/status").json()["problems"][0]
    manager.end()
    assert "Revision 2 of the policy is refused" in manager.log.read_text()
    _start_with_policy(start, tmp_path, '[queues.mended]\nusers = ["*"]\n', f"--port={port}")
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=bearer) as client:
        _await(partial(_answers, client))
        assert client.get("/policy").json()["revision"] == 3
        assert client.get("/status").json()["problems"] == []


def _start_with_policy(start, folder: Path, policy: str, *options: str) -> Manager:
    file = folder / "policy.toml"
    file.write_text(policy)
    named = [f"--policy={file}"] if policy else []
    manager = start(*(options or ("--port=0",)), *named)
    manager.await_file(folder / "state" / "admin-token")
    return manager


def test_port_in_use_is_one_line(start):
    """With the port and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        manager = start(f"--port={taken.getsockname()[1]}")
        assert manager.process.wait(_WITHIN_S) == 1
    [line] = manager.log.read_text().splitlines()
    assert "Address already in use" in line
    assert "--port" in line


async def test_killed_manager_loses_nothing_it_acknowledged(start, tmp_path):
    """Killed under load, five times: every answered claim is there, every key is known."""
    port, answered = _free_port(), {}
    for _ in range(5):
        manager = start(f"--port={port}", "--ManagerApp.most_claims_a_user=100000")
        token = manager.await_file(tmp_path / "state" / "admin-token")
        await _listening(port)
        async with _client(port, token) as client:
            killing = asyncio.get_running_loop().call_later(0.4, manager.process.kill)
            await asyncio.gather(*(_ask(client, answered) for _ in range(8)))
            killing.cancel()
        manager.process.wait(_WITHIN_S)
    start(f"--port={port}", "--ManagerApp.most_claims_a_user=100000")
    await _listening(port)
    async with _client(port, token) as client:
        kept = {view["id"] for view in (await client.get("/api/v1/claims?limit=1000")).json()}
        key, claim = next(iter(answered.items()))
        again = await client.post("/api/v1/claims", json=_BODY, headers={"Idempotency-Key": key})
        after = {view["id"] for view in (await client.get("/api/v1/claims?limit=1000")).json()}
    assert len(answered) > 20
    assert set(answered.values()) <= kept or len(kept) == 1000
    assert (again.json()["id"], after) == (claim, kept)


def test_embedded_manager_writes_and_removes_its_runtime_file(start, tmp_path):
    """0600, with all a client needs; and nothing is left of it and its agent."""
    runtime_file = tmp_path / "run" / "gpupool.json"
    manager = _embedded(start, runtime_file)
    told = json.loads(manager.await_file(runtime_file))
    assert told["manager_pid"] == manager.process.pid
    assert runtime_file.stat().st_mode & 0o077 == 0
    with httpx.Client(base_url=told["url"], headers=_bearer(told["token"])) as client:
        assert client.get("/health").json() == {"status": "ok"}
        _await(lambda: client.get("/api/v1/hosts").json())
    agent = int((tmp_path / "agent" / "agent.lock").read_text().split()[0])
    assert told["token"] not in _command_lines()
    assert manager.end() == 0
    assert not runtime_file.exists()
    assert not _is_alive(agent)


def test_agent_survives_a_killed_manager_and_joins_the_next(start, tmp_path):
    """Same agent, same host: nothing dies with its parent."""
    runtime_file = tmp_path / "gpupool.json"
    first = _embedded(start, runtime_file)
    told = json.loads(first.await_file(runtime_file))
    with httpx.Client(base_url=told["url"], headers=_bearer(told["token"])) as client:
        host = _await(lambda: client.get("/api/v1/hosts").json())[0]["id"]
    agent = int((tmp_path / "agent" / "agent.lock").read_text().split()[0])
    first.end(signal.SIGKILL)
    assert _is_alive(agent)
    runtime_file.unlink()
    second = _embedded(start, runtime_file)
    told = json.loads(second.await_file(runtime_file))
    with httpx.Client(base_url=told["url"], headers=_bearer(told["token"])) as client:
        _await(lambda: [h for h in client.get("/api/v1/hosts").json() if h["phase"] == "connected"])
        assert [h["id"] for h in client.get("/api/v1/hosts").json()] == [host]
    assert int((tmp_path / "agent" / "agent.lock").read_text().split()[0]) == agent
    assert second.end() == 0, second.log.read_text()
    _await(lambda: not _is_alive(agent))


def test_embedded_manager_leaves_another_pools_agent_alone(start, tmp_path):
    """It holds the folder that ours would use: it is neither ended nor taken over."""
    other = start("--port=0")
    port = _port_of(other, tmp_path / "state" / "admin-token")
    command = [sys.executable, "-m", "jupyter_gpupool.agent", f"--state={tmp_path / 'agent'}"]
    with (tmp_path / "agent.log").open("wb") as log:
        agent = subprocess.Popen(
            [*command, f"--join=http://127.0.0.1:{port}", "--simulated=1"],
            env=os.environ | {"GPUPOOL_TOKEN": _agent_token(port, tmp_path)},
            stdout=log,
            stderr=log,
        )
    try:
        _await((tmp_path / "agent" / "agent.lock").exists)
        options = ("--embedded", "--simulated=1", f"--agent-state={tmp_path / 'agent'}")
        place = f"--runtime-file={tmp_path / 'gpupool.json'}"
        manager = start(*options, place, "--stop-all-on-exit", folder=tmp_path / "own")
        manager.await_file(tmp_path / "gpupool.json")
        assert manager.end() == 0
        assert agent.poll() is None, (tmp_path / "agent.log").read_text()
    finally:
        agent.kill()
        agent.wait(_WITHIN_S)


def test_embedded_manager_heeds_no_other_managers_settings(start, tmp_path, monkeypatch):
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
    told = json.loads(_embedded(start, runtime_file).await_file(runtime_file))
    assert told["url"].startswith("http://127.0.0.1:")
    assert (tmp_path / "state" / "manager.sqlite").exists()


def test_embedded_folders_are_nobody_elses(monkeypatch):
    """Neither a standalone manager's or agent's, nor another host's on the same home."""
    monkeypatch.setattr(app, "default_state_folder", lambda: Path("/base/manager"))
    folder = app.default_embedded_folder()
    assert folder == Path("/base/embedded") / this_host()


def test_unused_embedded_manager_ends_by_itself(start, tmp_path):
    """And takes its agent along."""
    runtime_file = tmp_path / "gpupool.json"
    manager = _embedded(start, runtime_file, "--idle-exit-after=1")
    manager.await_file(runtime_file)
    assert manager.process.wait(_WITHIN_S) == 0
    assert not runtime_file.exists()


def _embedded(start, runtime_file: Path, *more: str) -> Manager:
    options = ("--embedded", "--simulated=1", "--stop-all-on-exit")
    return start(*options, f"--runtime-file={runtime_file}", *more)


def _port_of(manager: Manager, token: Path) -> int:
    manager.await_file(token)
    said = _await(lambda: re.search(r"Listening on http://[^:]+:(\d+)", manager.log.read_text()))
    return int(said[1])


def _agent_token(port: int, folder: Path) -> str:
    admin = (folder / "state" / "admin-token").read_text()
    url = f"http://127.0.0.1:{port}/api/v1/tokens"
    made = httpx.post(url, headers=_bearer(admin), json={"user": "agents", "role": "agent"})
    return made.json()["secret"]


async def _ask(client: httpx.AsyncClient, answered: dict[str, str]) -> None:
    while True:
        key = os.urandom(8).hex()
        try:
            answer = await client.post(
                "/api/v1/claims", json=_BODY, headers={"Idempotency-Key": key}
            )
        except httpx.TransportError:
            return
        answered[key] = answer.json()["id"]


async def _listening(port: int) -> None:
    async with asyncio.timeout(_WITHIN_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


def _client(port: int, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers=_bearer(token), timeout=_WITHIN_S
    )


def _await(look):
    deadline = time.monotonic() + _WITHIN_S
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return found


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/status").is_success
    except httpx.ConnectError:
        return False


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token.strip()}"}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


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
