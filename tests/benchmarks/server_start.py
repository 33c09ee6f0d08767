"""How long a Jupyter server takes until it answers, with our extension or without it.

Used by `notebook.py`.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.005


def seconds_to_answer(*, extension: bool) -> float:
    """Start one in a folder of its own, wait for its first answer, end it.

    Raises:
        TimeoutError: If it does not answer within a minute.
    """
    with tempfile.TemporaryDirectory(prefix="gpupool-server-") as folder:
        port = _free_port()
        started_s = time.perf_counter()
        server = _start(Path(folder), port, extension=extension)
        try:
            _wait_for_answer(port, server)
            return time.perf_counter() - started_s
        finally:
            server.terminate()
            server.wait(30)


def _start(folder: Path, port: int, *, extension: bool) -> "subprocess.Popen[bytes]":
    enabled = {"ServerApp": {"jpserver_extensions": {"jupyter_gpupool": extension}}}
    config = folder / "config"
    config.mkdir()
    (config / "jupyter_server_config.json").write_text(json.dumps(enabled))
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter_server", "--no-browser", f"--port={port}"),
            *("--ip=127.0.0.1", "--IdentityProvider.token=t", "--allow-root"),
            f"--ServerApp.root_dir={folder}",
        ],
        env=os.environ
        | {"JUPYTER_CONFIG_DIR": str(config), "JUPYTER_RUNTIME_DIR": f"{folder}/run"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _wait_for_answer(port: int, server: "subprocess.Popen[bytes]") -> None:
    deadline_s = time.monotonic() + _WITHIN_S
    while time.monotonic() < deadline_s and server.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token=t", timeout=5).close()
            return
        time.sleep(_LOOK_EVERY_S)
    raise TimeoutError("the Jupyter server did not answer")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
