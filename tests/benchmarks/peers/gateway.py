"""dask-gateway as a peer: its own environment, its server with the local backend, one client.

Used by `claim_latency.py`. dask-gateway starts `dask-scheduler`, which distributed no longer has,
so its commands are set to `dask scheduler` and `dask worker`; nothing else but the addresses
differs from its defaults. It runs the same distributed as ours. A round of it hangs now and then:
after a while that counts as its failure, and it is started anew.
"""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self

VERSION = "2026.3.0"
_START_WITHIN_S = 30.0
_ROUND_WITHIN_S = 30.0
_STOP_WITHIN_S = 30.0
_CONFIG = """
c.DaskGateway.backend_class = "dask_gateway_server.backends.local.UnsafeLocalBackend"
c.DaskGateway.address = "127.0.0.1:{server_port}"
c.Proxy.address = "127.0.0.1:{proxy_port}"
c.UnsafeLocalBackend.clusters_directory = "{folder}"
c.ClusterConfig.scheduler_cmd = ["{bin}/dask", "scheduler"]
c.ClusterConfig.worker_cmd = ["{bin}/dask", "worker"]
"""


class PeerFailed(Exception):
    """A round of the peer failed or hung: counted, not fatal."""


class PeerMissing(PeerFailed):
    """The peer cannot run here; the message says why in one line."""


def environment(build: Path) -> Path:
    """The folder of dask-gateway's own environment; made on first use.

    Raises:
        PeerMissing: If it cannot be installed.
    """
    folder = build / f"dask-gateway-{VERSION}"
    done = folder / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        _install(folder)
        done.touch()
    return folder


def _install(folder: Path) -> None:
    wanted = [
        f"dask-gateway=={VERSION}",
        f"dask-gateway-server[local]=={VERSION}",
        f"distributed=={version('distributed')}",
    ]
    command = [folder / "bin" / "pip", "install", "-qq", "--disable-pip-version-check", *wanted]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise PeerMissing(f"dask-gateway {VERSION} cannot be installed: {last}")


class GatewayPeer:
    """A dask-gateway server and its client. Each `first_result` is a new cluster."""

    def __init__(self, venv: Path) -> None:
        self._bin = venv / "bin"
        self._folder = tempfile.TemporaryDirectory(prefix="gateway-", ignore_cleanup_errors=True)
        self._server: subprocess.Popen[bytes] | None = None
        self._client: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._folder.cleanup()

    def first_result(self) -> dict[str, float]:
        """Make a cluster, scale it to one worker, get a result, shut it down.

        Raises:
            PeerFailed: If dask-gateway failed or hung; the next round starts it anew.
        """
        try:
            self._start()
            answer = self._ask()
        except PeerFailed:
            self._stop()
            raise
        return {key: float(value) for key, value in answer.items()}

    def _ask(self) -> dict[str, str]:
        assert self._client is not None
        assert self._client.stdin is not None
        self._client.stdin.write("round\n")
        self._client.stdin.flush()
        return _answer(self._client, _ROUND_WITHIN_S)

    def _start(self) -> None:
        """Start server and client unless they run: no round's time holds their start."""
        if self._client is not None:
            return
        server_port, proxy_port = _free_ports(2)
        self._server = self._start_server(server_port, proxy_port)
        _wait_for_route(proxy_port, self._server)
        self._client = self._start_client(proxy_port)
        _answer(self._client, _START_WITHIN_S)

    def _stop(self) -> None:
        for process in (self._client, self._server):
            if process is not None:
                # The server takes its clusters down with it.
                process.terminate()
                _end(process)
        self._client = self._server = None

    def _start_server(self, server_port: int, proxy_port: int) -> subprocess.Popen[bytes]:
        config = Path(self._folder.name) / "dask_gateway_config.py"
        config.write_text(
            _CONFIG.format(
                server_port=server_port,
                proxy_port=proxy_port,
                folder=self._folder.name,
                bin=self._bin,
            )
        )
        log = (Path(self._folder.name) / "server.log").open("wb")
        with log:
            return subprocess.Popen(
                [self._bin / "dask-gateway-server", "-f", config],
                stdout=log,
                stderr=log,
                env=os.environ | {"PATH": f"{self._bin}:{os.environ['PATH']}"},
                start_new_session=True,
            )

    def _start_client(self, proxy_port: int) -> subprocess.Popen[str]:
        script = Path(__file__).with_name("dask_gateway_rounds.py")
        return subprocess.Popen(
            [self._bin / "python", script, f"http://127.0.0.1:{proxy_port}", "ann"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def _answer(client: "subprocess.Popen[str]", within_s: float) -> dict[str, str]:
    assert client.stdout is not None
    ready, _, _ = select.select([client.stdout], [], [], within_s)
    if not ready:
        raise PeerFailed(f"dask-gateway hung for {within_s:.0f} s")
    line = client.stdout.readline()
    answer: dict[str, str] = json.loads(line) if line else {"failed": "its client has ended"}
    if "failed" in answer:
        raise PeerFailed(f"dask-gateway: {answer['failed']}")
    return answer


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_for_route(port: int, server: "subprocess.Popen[bytes]") -> None:
    """Wait until the server answers through its proxy, which listens before it has the route."""
    deadline = time.monotonic() + _START_WITHIN_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise PeerMissing("dask-gateway's server does not answer")


def _end(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    try:
        process.wait(_STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
