"""The manager as a process: how it starts, refuses to, ends, and what a kill leaves."""

import asyncio
import os
import resource
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import pytest
from manager_harness.processes import WITHIN_S, Manager, bearer, free_port
from waiting import eventually

_BODY = {"workers": {"min": 1, "max": 1}}


def test_first_start_leaves_an_admin_token(start_manager, tmp_path):
    """In a 0600 file of a 0700 folder; and a signal ends it with 0."""
    port = free_port()
    manager = start_manager(f"--port={port}")
    token = manager.await_file(tmp_path / "state" / "admin-token")
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer(token)) as client:
        assert client.get("/api/v1/status").json()["role"] == "admin"
    assert (tmp_path / "state" / "admin-token").stat().st_mode & 0o077 == 0
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    assert manager.end() == 0
    assert token not in manager.log.read_text()


def test_manager_takes_all_the_files_that_its_host_allows(start_manager, tmp_path):
    """Each connection costs one."""
    manager = start_manager("--port=0")
    manager.await_file(tmp_path / "state" / "admin-token")
    soft, hard = resource.prlimit(manager.process.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, 1 << 20)


def test_second_manager_on_a_state_folder_is_refused(start_manager, tmp_path):
    """One sentence that names the first one's pid."""
    first = start_manager("--port=0")
    first.await_file(tmp_path / "state" / "admin-token")
    second = start_manager("--port=0")
    assert second.process.wait(WITHIN_S) == 1
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
def test_what_cannot_start_says_so_in_one_line(start_manager, options, words):
    """No traceback for a mistake in the settings."""
    manager = start_manager("--port=0", *options)
    assert manager.process.wait(WITHIN_S) == 1
    [line] = manager.log.read_text().splitlines()
    assert words in line


def test_wrong_policy_stops_the_start_with_its_key(start_manager, tmp_path):
    """Rather than a pool that nobody meant."""
    (tmp_path / "policy.toml").write_text("[queues.a]\nparent = 'b'")
    manager = start_manager("--port=0", f"--policy={tmp_path / 'policy.toml'}")
    assert manager.process.wait(WITHIN_S) == 1
    [line] = manager.log.read_text().splitlines()
    assert 'The parent "b" of queue "a" is unknown.' in line


def test_policy_file_wins_at_each_start(start_manager, tmp_path):
    """What an admin applied meanwhile stays in the history, and they were warned."""
    file, token = tmp_path / "policy.toml", tmp_path / "state" / "admin-token"
    file.write_text('[queues.filed]\nusers = ["*"]\n')
    for restart in range(2):
        port = free_port()
        manager = start_manager(f"--port={port}", f"--policy={file}")
        headers = bearer(manager.await_file(token))
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers) as client:
            eventually(partial(_answers, client), WITHIN_S)
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
def test_stored_policy_that_is_refused_now_is_told_and_stops_nothing(start_manager, tmp_path, file):
    """As after an upgrade: the last one that is understood holds, until a corrected file comes."""
    port, state = free_port(), tmp_path / "state"
    _start_with_policy(start_manager, tmp_path, '[queues.kept]\nusers = ["*"]\n').end()
    with closing(sqlite3.connect(state / "manager.sqlite")) as database, database:
        wrong = "insert into policies (revision, at, by, source) select 2, at, by, ? from policies"
        database.execute(wrong, ["[queues.old]\nwish = 3\n"])
    manager = _start_with_policy(start_manager, tmp_path, file, f"--port={port}")
    headers = bearer((state / "admin-token").read_text())
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers) as client:
        eventually(partial(_answers, client), WITHIN_S)
        assert client.get("/policy").json()["revision"] == 1
        assert "wish" in client.get("/status").json()["problems"][0]
    manager.end()
    assert "Revision 2 of the policy is refused" in manager.log.read_text()
    _start_with_policy(
        start_manager, tmp_path, '[queues.mended]\nusers = ["*"]\n', f"--port={port}"
    )
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", headers=headers) as client:
        eventually(partial(_answers, client), WITHIN_S)
        assert client.get("/policy").json()["revision"] == 3
        assert client.get("/status").json()["problems"] == []


def _start_with_policy(start_manager, folder: Path, policy: str, *options: str) -> Manager:
    file = folder / "policy.toml"
    file.write_text(policy)
    named = [f"--policy={file}"] if policy else []
    manager = start_manager(*(options or ("--port=0",)), *named)
    manager.await_file(folder / "state" / "admin-token")
    return manager


def test_port_in_use_is_one_line(start_manager):
    """With the port and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        manager = start_manager(f"--port={taken.getsockname()[1]}")
        assert manager.process.wait(WITHIN_S) == 1
    [line] = manager.log.read_text().splitlines()
    assert "Address already in use" in line
    assert "--port" in line


async def test_killed_manager_loses_nothing_it_acknowledged(start_manager, tmp_path):
    """Killed under load, five times: every answered claim is there, every key is known."""
    port, answered = free_port(), {}
    for _ in range(5):
        manager = start_manager(f"--port={port}", "--ManagerApp.most_claims_a_user=100000")
        token = manager.await_file(tmp_path / "state" / "admin-token")
        await _listening(port)
        async with _client(port, token) as client:
            enough = len(answered) + 40
            asking = (_ask(client, answered, enough, manager.process.kill) for _ in range(8))
            await asyncio.gather(*asking)
        manager.process.wait(WITHIN_S)
    start_manager(f"--port={port}", "--ManagerApp.most_claims_a_user=100000")
    await _listening(port)
    async with _client(port, token) as client:
        kept = {view["id"] for view in (await client.get("/api/v1/claims?limit=1000")).json()}
        key, claim = next(iter(answered.items()))
        again = await client.post("/api/v1/claims", json=_BODY, headers={"Idempotency-Key": key})
        after = {view["id"] for view in (await client.get("/api/v1/claims?limit=1000")).json()}
    assert len(answered) > 20
    assert set(answered.values()) <= kept or len(kept) == 1000
    assert (again.json()["id"], after) == (claim, kept)


async def _ask(
    client: httpx.AsyncClient, answered: dict[str, str], enough: int, kill: Callable[[], None]
) -> None:
    """Claim until nobody answers; once there are enough answers, others are still under way."""
    while True:
        key = os.urandom(8).hex()
        try:
            answer = await client.post(
                "/api/v1/claims", json=_BODY, headers={"Idempotency-Key": key}
            )
        except httpx.TransportError:
            return
        answered[key] = answer.json()["id"]
        if len(answered) == enough:
            kill()


async def _listening(port: int) -> None:
    async with asyncio.timeout(WITHIN_S):
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
        base_url=f"http://127.0.0.1:{port}", headers=bearer(token), timeout=WITHIN_S
    )


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/status").is_success
    except httpx.ConnectError:
        return False
