"""Managers as processes of their own."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
from waiting import eventually

WITHIN_S = 30


class Manager:
    """One manager process."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.log = folder, folder / "log"
        command = [sys.executable, "-m", "jupyter_gpupool.manager", f"--state={folder / 'state'}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*command, *options], stdout=log, stderr=log)

    def await_file(self, path: Path) -> str:
        """The text of a file that it writes once it listens."""
        eventually(lambda: path.exists() or self.process.poll() is not None, WITHIN_S)
        assert path.exists(), self.log.read_text()
        return path.read_text()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal it and wait."""
        self.process.send_signal(number)
        return self.process.wait(WITHIN_S)


def bearer(token: str) -> dict[str, str]:
    """The header that shows a token."""
    return {"Authorization": f"Bearer {token.strip()}"}


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def port_of(manager: Manager, token: Path) -> int:
    """Where a manager listens, once it does."""
    manager.await_file(token)
    listening = re.compile(r"Listening on http://[^:]+:(\d+)")
    said = eventually(lambda: listening.search(manager.log.read_text()), WITHIN_S)
    return int(said[1])


def agent_token(port: int, folder: Path) -> str:
    """A token for an agent, made by the admin."""
    admin = (folder / "state" / "admin-token").read_text()
    url = f"http://127.0.0.1:{port}/api/v1/tokens"
    made = httpx.post(url, headers=bearer(admin), json={"user": "agents", "role": "agent"})
    return made.json()["secret"]
