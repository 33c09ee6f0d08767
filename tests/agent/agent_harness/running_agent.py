"""An agent's process, and what it has started."""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.control_groups import ControlGroups
from jupyter_gpupool.agent.procfs import ProcessRow
from jupyter_gpupool.agent.state_folder import StateFolder
from jupyter_gpupool.agent.stopping import send, wait_for_end
from jupyter_gpupool.agent.temporary import forget_temporary

from .manager_end import DEADLINE_S, TOKEN

_NO_CLAIMS = {"gpupool-spare", "gpupool-zygote", ""}
"""What a zygote's child is called before it is any claim's, ready or rehearsing; and once ended."""


class RunningAgent:
    """An agent's process in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.log = folder / "agent.log"
        self.url = url
        self.mark = f"GPUPOOL_TEST_AGENT={folder}"
        self.popen: subprocess.Popen[bytes] | None = None
        self.environment: dict[str, str] = {}
        self._name = f"agent-test-{uuid.uuid4().hex}"

    @property
    def pid(self) -> int:
        """The agent's pid."""
        assert self.popen is not None
        return self.popen.pid

    def start(self, *options: str) -> "RunningAgent":
        """Start the process."""
        name, _, value = self.mark.partition("=")
        usual = {
            "--join": self.url,
            "--state": str(self.state),
            "--simulated": "2",
            "--simulated-host": self._name,
            # What these tests want names no user, and they may run as root.
            "--AgentApp.run_claims_as_agent": "True",
        }
        given = {option.partition("=")[0] for option in options}
        kept = [f"{key}={text}" for key, text in usual.items() if key not in given]
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "jupyter_gpupool.agent", *kept, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, name: value, "GPUPOOL_TOKEN": TOKEN, **self.environment},
                cwd=self.folder,
            )
        return self

    def kill(self) -> None:
        """End it as an out-of-memory killer would."""
        assert self.popen is not None
        self.popen.kill()
        self.popen.wait(10)

    async def wait(self, deadline_s: float = DEADLINE_S) -> int:
        """Wait until it ends by itself; its exit code."""
        assert self.popen is not None
        return await asyncio.to_thread(self.popen.wait, deadline_s)

    def marked(self) -> list[ProcessRow]:
        """Everything that lives and was started by this agent."""
        name, _, value = self.mark.partition("=")
        return [
            row
            for pid, row in procfs.read_rows().items()
            if procfs.environment_of(pid).get(name) == value
        ]

    def zygotes(self) -> list[int]:
        """Pids of its zygotes."""
        return [row.id.pid for row in self.marked() if row.parent == self.pid]

    def beside(self) -> list[str]:
        """What it has started and lives, but for its zygotes and their spares; by name."""
        rows = self.marked()
        zygotes = {row.id.pid for row in rows if row.parent == self.pid}
        others = [row for row in rows if row.id.pid not in {self.pid, *zygotes}]
        names = {row: _name_of(row) for row in others}
        return [
            name
            for row, name in names.items()
            if row.parent not in zygotes or name not in _NO_CLAIMS
        ]

    async def until_gone(self) -> None:
        """See that no claim's process outlives it, and that its spares hear of its end."""
        rows = self.marked()
        assert {_name_of(row) for row in rows} <= _NO_CLAIMS
        for row in rows:
            assert await wait_for_end(row.id, DEADLINE_S), row

    def close(self) -> None:
        """End everything it has started."""
        while left := self.marked():
            for row in left:
                send(row.id, signal.SIGKILL)
        if self.popen is not None:
            self.popen.wait(10)
        if (self.state / "host-id").exists():
            ControlGroups((self.state / "host-id").read_text().strip()).tidy()
            for path in (self.state / "claims").iterdir():
                forget_temporary(StateFolder(self.state), path.name)


def _name_of(row: ProcessRow) -> str:
    try:
        return Path(f"/proc/{row.id.pid}/comm").read_text().strip()
    except OSError:
        return ""
