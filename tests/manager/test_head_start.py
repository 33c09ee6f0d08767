"""An embedded manager's head start: the agent that is begun before the manager's libraries."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil
import pytest
from waiting import eventually

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.manager.own_agents import is_held

pytestmark = pytest.mark.e2e


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[EmbeddedPool]:
    """A pool of one device; it may be started again."""
    pool = EmbeddedPool(tmp_path, options=("--simulated=1",))
    yield pool
    pool.stop()


Connect = Callable[[], httpx.Client]


@pytest.fixture
def connect(pool: EmbeddedPool) -> Iterator[Connect]:
    """Starts the pool if it does not run; a client of its API."""
    with ExitStack() as clients:

        def connect() -> httpx.Client:
            address = pool.start()
            url, headers = f"{address.url}/api/v1", {"Authorization": f"Bearer {address.token}"}
            return clients.enter_context(httpx.Client(base_url=url, headers=headers, timeout=30))

        yield connect


@pytest.mark.parametrize("broken", ["state/manager.sqlite", "run"])
def test_manager_that_cannot_start_leaves_no_agent(tmp_path: Path, broken: str) -> None:
    """What was begun for it is ended with it, however far it came."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / broken).write_bytes(b"no database, and no folder" * 1000)
    options = [f"--state={tmp_path}/state", f"--agent-state={tmp_path}/agent", "--simulated=1"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "jupyter_gpupool.manager", "--embedded"),
            *(f"--runtime-file={tmp_path}/run/pool.json", *options),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert not [p for p in psutil.process_iter(["cmdline"]) if _names(p, tmp_path)]


def test_agent_of_the_head_start_is_the_pools_only_one(pool: EmbeddedPool, tmp_path: Path) -> None:
    """It is kept like any other, and ends with the pool."""
    pool.start()
    eventually(lambda: is_held(tmp_path / "agent"))
    started = (tmp_path / "state" / "agent-process").read_text().splitlines()
    assert [line.split()[0] for line in started] == [str(_agent(tmp_path))]
    pool.stop()
    assert not is_held(tmp_path / "agent")


def test_agent_with_a_revoked_token_joins_after_the_next_start(
    pool: EmbeddedPool, connect: Connect, tmp_path: Path
) -> None:
    """A pool must not stay without its host because of a token of its own."""
    first = connect()
    eventually(lambda: _connected(first))
    [token] = [t["id"] for t in first.get("/tokens").json() if t["role"] == "agent"]
    first.delete(f"/tokens/{token}").raise_for_status()
    _kill_manager(pool)
    os.kill(_agent(tmp_path), signal.SIGKILL)
    second = connect()
    eventually(lambda: _connected(second))


def test_token_that_a_stranger_may_have_heard_is_void(
    pool: EmbeddedPool, connect: Connect, tmp_path: Path
) -> None:
    """The agent goes on calling at the old port, whoever has it by now."""
    first = connect()
    eventually(lambda: _connected(first))
    heard, port = (tmp_path / "state" / "agent-token").read_text(), first.base_url.port
    _kill_manager(pool)
    with socket.create_server(("127.0.0.1", port or 0)):
        second = connect()
        eventually(lambda: _connected(second))
    answer = second.get("/status", headers={"Authorization": f"Bearer {heard}"})
    assert answer.status_code == 401


def test_stopped_agent_is_replaced(connect: Connect, tmp_path: Path) -> None:
    """It keeps the state folder and hears nothing: no claim would ever start."""
    client = connect()
    eventually(lambda: _connected(client))
    stopped = _agent(tmp_path)
    os.kill(stopped, signal.SIGSTOP)
    eventually(lambda: _agent(tmp_path) not in {0, stopped} and _connected(client))


def test_agent_that_cannot_start_is_the_reason_of_a_wait(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last words, and not only that there is no host."""
    (tmp_path / "jupyter").mkdir()
    settings = "c.AgentApp.environments = {'torch': '/nix/torch'}"
    (tmp_path / "jupyter" / "jupyter_gpupool_config.py").write_text(settings)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "jupyter"))
    client = connect()
    claim = client.post("/claims", json={"workers": {"min": 1, "max": 1}}).json()
    reason = eventually(lambda: _reason_with(client, claim["id"], "/nix/torch"))
    assert reason.startswith("Not possible as the pool is: 1 device wanted, 0 joined. The agent")


def _reason_with(client: httpx.Client, claim_id: str, words: str) -> str:
    reason = str(client.get(f"/claims/{claim_id}").json()["wait"]["reason"])
    return reason if words in reason else ""


def _connected(client: httpx.Client) -> bool:
    return [host["phase"] for host in client.get("/hosts").json()] == ["connected"]


def _kill_manager(pool: EmbeddedPool) -> None:
    assert pool.address is not None
    assert pool.address.manager_pid is not None
    manager = psutil.Process(pool.address.manager_pid)
    manager.kill()
    manager.wait(30)


def _agent(folder: Path) -> int:
    """Its pid; 0 while it has not written it yet."""
    words = (folder / "agent" / "agent.lock").read_text().split()
    return int(words[0]) if words else 0


def _names(process: psutil.Process, folder: Path) -> bool:
    return any(str(folder) in word for word in process.info["cmdline"] or [])
