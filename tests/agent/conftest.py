"""Builders for the agent's tests: rows of its tables, and real agents with their manager's end."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from websockets.asyncio.server import serve

sys.path.insert(0, str(Path(__file__).parent))

from agent_harness.manager_end import ManagerEnd, ReportReader
from agent_harness.one_host import NO_ZYGOTE, OneHost
from agent_harness.running_agent import RunningAgent

from jupyter_gpupool.agent.devices.lock import DeviceLocks
from jupyter_gpupool.agent.footprint import HOST_MARK
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.procfs import ProcessId, ProcessRow
from jupyter_gpupool.agent.seen import Seen, Stage
from jupyter_gpupool.manager.certificates import ClaimSecrets, make_secrets
from jupyter_gpupool.pool.request import WorkerOptions
from jupyter_gpupool.protocol.link import (
    HostReport,
    TlsCredentials,
    WantedClaim,
    WantedScheduler,
    WantedWorker,
)

# --- rows


@pytest.fixture
def worker_seen() -> Callable[..., Seen]:
    """A worker that runs, with whatever differs."""

    def make(**different) -> Seen:
        values = {
            "key": ProcessKey("c1", 1, "l1"),
            "stage": Stage.ALIVE,
            "uid": os.getuid(),
            "device": "SIM-1",
            "process": ProcessId(101, 7),
        }
        return Seen(**(values | different))

    return make


@pytest.fixture
def scheduler_seen() -> Callable[..., Seen]:
    """A scheduler that listens, with whatever differs."""

    def make(**different) -> Seen:
        values = {
            "key": ProcessKey("c1", 1),
            "stage": Stage.ALIVE,
            "uid": os.getuid(),
            "process": ProcessId(100, 7),
            "address": "tls://127.0.0.1:4000",
        }
        return Seen(**(values | different))

    return make


@pytest.fixture
def row() -> Callable[..., ProcessRow]:
    """A line of the process table; its start time is its pid, unless told otherwise."""

    def make(pid: int, *, parent: int = 1, session: int = 0, state: str = "S", started: int = 0):
        return ProcessRow(
            id=ProcessId(pid, started or pid),
            parent=parent,
            session=session or pid,
            state=state,
            rss_bytes=0,
        )

    return make


@pytest.fixture
def wanted_claim() -> Callable[..., WantedClaim]:
    """What a manager wants of one claim; without real credentials."""
    none = TlsCredentials(ca="", certificate="", key="")

    def make(claim_id: str = "c1", *workers: WantedWorker, **different) -> WantedClaim:
        values = {
            "start": 1,
            "owner": "ann",
            "os_user": None,
            "environment": "",
            "options": WorkerOptions(),
            "scheduler": WantedScheduler(credentials=none, dashboard_prefix="p"),
            "worker_credentials": none,
        }
        return WantedClaim(claim_id=claim_id, workers=workers, **(values | different))

    return make


# --- a real agent and the manager's end of its link


@pytest.fixture
async def manager_end() -> AsyncIterator[ManagerEnd]:
    """A real WebSocket server that an agent can join."""
    end = ManagerEnd()
    async with serve(
        end.serve_connection, "127.0.0.1", 0, max_size=None, process_request=end.check_token
    ) as server:
        end.server = server
        port = server.sockets[0].getsockname()[1]
        end.url = f"http://127.0.0.1:{port}"
        yield end


@pytest.fixture
def agent(manager_end: ManagerEnd, tmp_path: Path) -> Iterator[RunningAgent]:
    """An agent that is not started yet."""
    running = RunningAgent(tmp_path, manager_end.url)
    yield running
    running.close()


@pytest.fixture
def real_claim() -> Callable[..., WantedClaim]:
    """A claim with real credentials; the same ones for the same name."""
    known: dict[str, ClaimSecrets] = {}

    def make(claim_id: str, *workers: WantedWorker, **different) -> WantedClaim:
        secrets = known.setdefault(claim_id, make_secrets(datetime.now(UTC), timedelta(hours=1)))
        values = {
            "start": 1,
            "owner": "ann",
            "os_user": None,
            "environment": "",
            "options": WorkerOptions(),
            "scheduler": WantedScheduler(
                credentials=_credentials(secrets, "scheduler"),
                dashboard_prefix=secrets.dashboard_prefix,
            ),
            "worker_credentials": _credentials(secrets, "worker"),
        }
        return WantedClaim(claim_id=claim_id, workers=workers, **(values | different))

    return make


def _credentials(secrets: ClaimSecrets, party: str) -> TlsCredentials:
    own = getattr(secrets, party)
    return TlsCredentials(ca=secrets.ca, certificate=own.certificate, key=own.key)


@pytest.fixture
def see() -> ReportReader:
    """Reads reports."""
    return ReportReader()


@pytest.fixture
async def joined(agent, manager_end) -> HostReport:
    """The first report of an agent that has joined."""
    agent.start()
    return await manager_end.until(lambda report: len(report.devices) == 2)


@pytest.fixture
def two_workers(joined) -> tuple[WantedWorker, ...]:
    """A worker on each of the host's two devices."""
    return tuple(
        WantedWorker(lease_id=f"l{index}", device=found.device.uuid)
        for index, found in enumerate(joined.devices)
    )


@pytest.fixture
async def running(manager_end, two_workers, real_claim, see) -> HostReport:
    """The report of a claim with two workers, all of them running."""
    await manager_end.want(real_claim("c1", *two_workers))
    return await manager_end.until(see.all_run(1, 2))


@pytest.fixture
def locked_elsewhere() -> Callable[[str], bool]:
    """Whether a device counts as leased to another pool's agent."""
    return DeviceLocks().is_held_elsewhere


@pytest.fixture
async def make_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., OneHost]]:
    """Makes a host in this process, which does nothing yet."""
    monkeypatch.setenv(HOST_MARK, "")
    made: list[OneHost] = []

    def make(zygote: str = NO_ZYGOTE) -> OneHost:
        made.append(OneHost(tmp_path, zygote))
        return made[-1]

    yield make
    for host in made:
        await host.close()
