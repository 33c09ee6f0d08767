"""A host's agent in the test's own process, with a device that says what the test wants."""

import asyncio
import signal
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.device_watch import Pace
from jupyter_gpupool.agent.environments import EnvironmentRules
from jupyter_gpupool.agent.footprint import HOST_MARK
from jupyter_gpupool.agent.host import HostAgent, HostSettings
from jupyter_gpupool.agent.host_facts import HostFacts
from jupyter_gpupool.agent.offered import DEFAULT_ENVIRONMENT, Offered
from jupyter_gpupool.agent.open_files import OpenFiles
from jupyter_gpupool.agent.state_folder import open_state_folder
from jupyter_gpupool.agent.stopping import send
from jupyter_gpupool.agent.users import UserRules
from jupyter_gpupool.pool.device import Device, DeviceSample
from jupyter_gpupool.protocol.link import HostReport

GIB = 2**30
NO_ZYGOTE = "#!/bin/sh\nexit 1\n"


class StubbornGpu:
    """A device that says what a test wants; what a driver is to the agent."""

    def __init__(self) -> None:
        self.device = Device(
            uuid=f"GPU-{uuid.uuid4()}", index=0, model="A100", memory_bytes=80 * GIB
        )
        self.used_bytes = 0

    def list(self):
        return (self.device,)

    def sample(self):
        used = self.used_bytes
        sample = DeviceSample(
            uuid=self.device.uuid, at=datetime.now(UTC), memory_used_bytes=used, processes=()
        )
        return (sample,)

    def close(self) -> None:
        pass


class OneHost:
    """A host's agent in this very process."""

    def __init__(self, folder: Path, zygote: str) -> None:
        self.id = f"host-{uuid.uuid4().hex[:8]}"
        self.gpu = StubbornGpu()
        self.folder = open_state_folder(folder / "state")
        interpreter = folder / "python"
        interpreter.write_text(zygote)
        interpreter.chmod(0o755)
        facts = HostFacts(name="a", address="127.0.0.1", cpus=1, memory_bytes=GIB)
        self.settings = HostSettings(
            facts=facts,
            pace=Pace(busy_s=0.05, idle_s=0.05, verify_within_s=0.1),
            memory_share_bytes=GIB,
            users=UserRules(run_claims_as_agent=True),
            environments=EnvironmentRules(
                offered=(Offered(DEFAULT_ENVIRONMENT, interpreter),), kernels_own=False, kept_s=60
            ),
        )
        self.agent: HostAgent | None = None
        self._run: asyncio.Task[None] | None = None

    def make(self) -> HostAgent:
        """Its agent, which does nothing yet."""
        self.agent = HostAgent(self.id, self.folder, self.gpu, self.settings, OpenFiles())
        return self.agent

    async def start(self) -> "OneHost":
        """Have an agent that runs."""
        await self.make().start()
        self._run = asyncio.create_task(self.agent.run())
        return self

    async def until(self, fits: Callable[[HostReport], bool]) -> HostReport:
        async with asyncio.timeout(15):
            while not fits(report := self.agent.report()):
                self.agent.news.clear()
                await self.agent.news.wait()
        return report

    def marked(self) -> list[int]:
        return [p for p in procfs.all_pids() if procfs.marks_of(p).get(HOST_MARK) == self.id]

    async def close(self) -> None:
        if self._run is not None:
            self._run.cancel()
            await asyncio.gather(self._run, return_exceptions=True)
        if self.agent is not None:
            await self.agent.close()
        for pid in self.marked():
            if (row := procfs.read_row(pid)) is not None:
                send(row.id, signal.SIGKILL)
