"""A Jupyter server of any Python, with the extension enabled by hand.

Used where the Python is not ours; tests/server has the one for everything else.
"""

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

_TOKEN = "t"
_UP_WITHIN_S = 90.0


@contextlib.contextmanager
def jupyter_server(
    interpreter: Path, folder: Path, environment: Mapping[str, str]
) -> Iterator[httpx.Client]:
    """Start one and wait until it answers; the client is logged in."""
    config = {"ServerApp": {"jpserver_extensions": {"jupyter_gpupool": True}}}
    (folder / "jupyter_server_config.json").write_text(json.dumps(config))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            *(interpreter, "-m", "jupyter_server", "--no-browser", "--allow-root"),
            *("--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={_TOKEN}"),
            f"--ServerApp.root_dir={folder}",
        ],
        env={
            "JUPYTER_RUNTIME_DIR": str(folder / "run"),
            **environment,
            "JUPYTER_CONFIG_DIR": str(folder),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    login = {"Authorization": f"token {_TOKEN}"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=login, timeout=60) as client:
            _wait_until_up(client, server)
            yield client
    finally:
        server.terminate()
        server.wait(30)


def _wait_until_up(client: httpx.Client, server: "subprocess.Popen[bytes]") -> None:
    deadline_s = time.monotonic() + _UP_WITHIN_S
    while True:
        with contextlib.suppress(httpx.TransportError):
            client.get("/api").raise_for_status()
            return
        assert server.poll() is None, "the Jupyter server has ended"
        assert time.monotonic() < deadline_s, "the Jupyter server does not answer"
        time.sleep(0.05)
