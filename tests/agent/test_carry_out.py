"""What the agent does when a start fails half-way, or an agent before it left things half-done."""

import asyncio
import errno
import os
import pwd
import signal
import sys
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.device_watch import Pace
from jupyter_gpupool.agent.footprint import HOST_MARK
from jupyter_gpupool.agent.host import HostAgent, HostSettings
from jupyter_gpupool.agent.host_facts import HostFacts
from jupyter_gpupool.agent.open_files import OpenFiles
from jupyter_gpupool.agent.records import Records
from jupyter_gpupool.agent.seen import Stage
from jupyter_gpupool.agent.state_folder import open_state_folder
from jupyter_gpupool.agent.users import UserRules
from jupyter_gpupool.pool.device import Device, DeviceSample
from jupyter_gpupool.protocol.link import Desired, HostReport, ProcessPhase

GIB = 2**30
NO_ZYGOTE = "#!/bin/sh\nexit 1\n"
LOSES_ANSWERS = f"""#!{sys.executable}
import os, socket, sys, time
from jupyter_gpupool.protocol.launch import Warm
link = socket.socket(fileno=int(sys.argv[-1]))
link.send(Warm().encode())
_, descriptors, _, _ = socket.recv_fds(link, 65536, 4)
ours, theirs = os.pipe()
if os.fork() == 0:
    os.setsid()
    link.close()
    os.dup2(descriptors[1], 1)
    print("born", flush=True)
    os.close(theirs)
    time.sleep(600)
os.close(theirs)
os.read(ours, 1)
"""


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
            interpreter=interpreter,
        )
        self.agent: HostAgent | None = None
        self._run: asyncio.Task[None] | None = None

    async def start(self) -> "OneHost":
        self.agent = HostAgent(self.id, self.folder, self.gpu, self.settings, OpenFiles())
        await self.agent.start()
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
            await self.agent.close()
        for pid in self.marked():
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
async def make_host(tmp_path, monkeypatch):
    monkeypatch.setenv(HOST_MARK, "")
    made = []

    def make(zygote: str = NO_ZYGOTE) -> OneHost:
        made.append(OneHost(tmp_path, zygote))
        return made[-1]

    yield make
    for host in made:
        await host.close()


async def test_device_that_was_not_proven_free_stays_so(
    make_host, worker_seen, locked_elsewhere
) -> None:
    """Whatever the agent before knew: its successor looks for itself, and holds the lock."""
    host = make_host()
    device = host.gpu.device.uuid
    left = worker_seen(device=device, stage=Stage.FREEING, process=None, used=True)
    Records(host.folder.running, boot=procfs.boot_id()).write(left)
    host.gpu.used_bytes = 10 * GIB
    await host.start()
    host.agent.desire(Desired(generation=1))
    report = await host.until(lambda r: "in use" in r.devices[0].state.problem)
    assert report.workers[0].phase is ProcessPhase.STOPPING
    assert locked_elsewhere(device)
    host.gpu.used_bytes = 0
    await host.until(lambda r: not r.workers)
    assert not locked_elsewhere(device)


async def test_device_that_nothing_came_to_is_free_at_once(make_host, worker_seen) -> None:
    """What is on it is none of ours."""
    host = make_host()
    left = worker_seen(device=host.gpu.device.uuid, stage=Stage.FAILED, process=None)
    Records(host.folder.running, boot=procfs.boot_id()).write(left)
    host.gpu.used_bytes = 10 * GIB
    await host.start()
    host.agent.desire(Desired(generation=1))
    await host.until(lambda r: not r.workers)


async def test_host_without_zygote_says_that_it_cannot_start(make_host) -> None:
    """The manager leaves it alone until it can."""
    host = await make_host().start()
    report = await host.until(lambda r: not r.can_start)
    assert "zygote" in report.problem


async def test_start_that_finds_no_descriptor_has_its_reason(
    make_host, wanted_claim, monkeypatch
) -> None:
    """It is not left starting for ever."""

    def refuse(_: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(pwd, "getpwnam", refuse)
    host = await make_host().start()
    host.agent.desire(Desired(generation=1, claims=(wanted_claim(os_user="ann"),)))
    report = await host.until(
        lambda r: r.schedulers and r.schedulers[0].phase is ProcessPhase.FAILED
    )
    assert "Too many open files" in report.schedulers[0].problem


async def test_child_whose_answer_was_lost_is_gone_before_its_failure_is_told(
    make_host, wanted_claim
) -> None:
    """Else another one would be started beside it."""
    host = await make_host(LOSES_ANSWERS).start()
    host.agent.desire(Desired(generation=1, claims=(wanted_claim(),)))
    report = await host.until(
        lambda r: r.schedulers and r.schedulers[0].phase is ProcessPhase.FAILED
    )
    assert "gone" in report.schedulers[0].problem
    [log] = host.folder.logs.glob("*/scheduler.log")
    assert not [pid for pid in host.marked() if str(log) in procfs.output_of(pid)]
    assert log.read_text() == "born\n"
