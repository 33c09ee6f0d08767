"""Runs the command line as its user does: its words, its exit status, with and without a pool."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import eventually

from jupyter_gpupool.cli import root
from jupyter_gpupool.client.embedded import EmbeddedPool

Run = Callable[..., "subprocess.CompletedProcess[str]"]
RunHere = Callable[..., "Done"]
Ask = Callable[..., Any]
DEVICES = 4


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


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit status."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user of a real pool, whose host has joined."""
    folder = tmp_path_factory.mktemp("pool")
    with EmbeddedPool(folder, options=(f"--simulated={DEVICES}",)) as pool:
        assert pool.address is not None
        url, token = pool.address.url, pool.address.token
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}) as client:
            status = f"{url}/api/v1/status"
            eventually(lambda: client.get(status).json()["devices"] == DEVICES, 60, "it has joined")
        yield {"GPUPOOL_URL": url, "GPUPOOL_TOKEN": token}


@pytest.fixture
def run_here(
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> RunHere:
    """Run a command within this process, which saves the second that a Python takes to start."""

    def start(*arguments: str, token: str = environment["GPUPOOL_TOKEN"]) -> Done:
        monkeypatch.setenv("GPUPOOL_URL", environment["GPUPOOL_URL"])
        monkeypatch.setenv("GPUPOOL_TOKEN", token)
        capsys.readouterr()
        status = root.run(arguments)
        return Done(status, *capsys.readouterr())

    return start


@pytest.fixture
def begin(environment: dict[str, str]) -> Callable[..., "subprocess.Popen[str]"]:
    """Start a command that goes on, as a process of its own."""

    def start(*arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "jupyter_gpupool.cli", *arguments],
            env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def ask(run_here: RunHere) -> Ask:
    """Run a command with --json and read its answer."""

    def answer(*arguments: str) -> Any:
        done = run_here(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return answer


@pytest.fixture
def released(run_here: RunHere) -> Iterator[None]:
    """Give back what a test claimed."""
    yield
    run_here("release", "--all")


@pytest.fixture
def until_free(ask: Ask) -> Callable[[], None]:
    """Wait for what an earlier test gave back, which is proven free a moment later."""
    return lambda: eventually(lambda: ask("status")["free"] == DEVICES, 60, "devices are free")


@pytest.fixture
def until_phase(ask: Ask) -> Callable[..., Any]:
    """Wait until a claim, by its id or name, is in a phase; one that hibernates holds nothing."""

    def look(claim: str, phase: str) -> Any:
        found = [view for view in ask("claims") if claim in (view["id"], view["name"])]
        is_so = found and found[0]["phase"] == phase
        return found[0] if is_so and not (phase == "hibernated" and found[0]["leases"]) else None

    def until(claim: str, phase: str, within_s: float = 30) -> Any:
        return eventually(lambda: look(claim, phase), within_s, f"{claim} is {phase}")

    return until
