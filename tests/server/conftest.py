"""A real Jupyter server, as a process, beside a real pool that it finds by its runtime file."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import eventually

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.this_host import ThisHost
from jupyter_gpupool.protocol.runtime_file import runtime_file_name

TOKEN = "jupyter-secret"
BASE_URL = "/user/j%C3%BCrgen%20o'neil@a%2Fb/"
"""As JupyterHub writes the address of a user whom nobody would call so."""
_EXTENSIONS = """
enabled = {"jupyter_gpupool": True, "jupyterlab": False, "jupyter_lsp": False}
c.ServerApp.jpserver_extensions = enabled
"""
_UP_WITHIN_S = 120.0
_DOWN_WITHIN_S = 30.0


@dataclass(frozen=True)
class JupyterServer:
    """A Jupyter server that runs."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{BASE_URL}"

    @property
    def socket_url(self) -> str:
        return "ws" + self.url.removeprefix("http")

    def client(self, **headers: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)


StartServer = Callable[..., JupyterServer]


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPool]:
    """A pool with four simulated devices that have joined."""
    folder = tmp_path_factory.mktemp("pool")
    with EmbeddedPool(folder, options=("--simulated=4",)) as pool:
        assert pool.address is not None
        yield pool


@pytest.fixture(scope="session")
def manager(pool: EmbeddedPool) -> Iterator[httpx.Client]:
    """The pool's own API, for what no browser may do."""
    assert pool.address is not None
    headers = {"Authorization": f"Bearer {pool.address.token}"}
    with httpx.Client(base_url=f"{pool.address.base}/api/v1", headers=headers) as client:
        yield client


@pytest.fixture(scope="session")
def runtime_folder(pool: EmbeddedPool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Jupyter runtime folder in which the pool is found."""
    folder = tmp_path_factory.mktemp("runtime")
    named = folder / runtime_file_name(ThisHost.read().mark)
    shutil.copy(pool._plan.runtime_file, named)
    return folder


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Start Jupyter servers; they end with the tests."""
    started: list[JupyterServer] = []

    def start(runtime_folder: Path, *, config: str = "", **more: str) -> JupyterServer:
        server = _start(tmp_path_factory.mktemp("jupyter"), runtime_folder, config, more)
        started.append(server)
        _wait_until_up(server)
        return server

    yield start
    for server in started:
        server.process.terminate()
    for server in started:
        server.process.wait(_DOWN_WITHIN_S)


@pytest.fixture(scope="session")
def server(start_server: StartServer, runtime_folder: Path) -> JupyterServer:
    """One server, shared by all who do not break it."""
    return start_server(runtime_folder)


@pytest.fixture(scope="session")
def login() -> dict[str, str]:
    """What a script without a browser shows."""
    return {"Authorization": f"token {TOKEN}"}


@pytest.fixture
def browser(server: JupyterServer, login: dict[str, str]) -> Iterator[httpx.Client]:
    """Somebody who is logged in, by token: it does not follow where it is sent."""
    with server.client(**login) as client:
        yield client


@pytest.fixture
def running_claim(browser: httpx.Client) -> Iterator[dict[str, Any]]:
    """A claim of one worker, made through the server."""
    made = browser.post("gpupool/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
    path = f"gpupool/api/v1/claims/{made.json()['id']}"
    yield eventually(lambda: _if_running(browser.get(path).json()), 60, "the claim runs")
    browser.post(f"{path}/release", json={})


def _if_running(view: dict[str, Any]) -> dict[str, Any] | None:
    return view if view["phase"] == "running" else None


def _start(folder: Path, runtime_folder: Path, config: str, more: dict[str, str]) -> JupyterServer:
    (folder / "config").mkdir()
    (folder / "config" / "jupyter_server_config.py").write_text(f"{_EXTENSIONS}\n{config}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = {name: value for name, value in os.environ.items() if not name.startswith("GPUPOOL_")}
    folders = {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(runtime_folder),
    }
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
                *("--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"),
                *(f"--IdentityProvider.token={TOKEN}", f"--ServerApp.base_url={BASE_URL}"),
                f"--ServerApp.root_dir={folder}",
            ],
            env=own | folders | more,
            stdout=output,
            stderr=output,
        )
    return JupyterServer(process, port, log)


def _wait_until_up(server: JupyterServer) -> None:
    def answers() -> bool:
        assert server.process.poll() is None, server.log.read_text()
        try:
            return httpx.get(f"{server.url}api").is_success
        except httpx.TransportError:
            return False

    eventually(answers, _UP_WITHIN_S, "the Jupyter server answers")
