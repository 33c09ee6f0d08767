"""Builders for the agent's tests: rows of its tables, and the manager's end of the link."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest
from websockets.asyncio.server import Request, Response, Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.control_groups import ControlGroups
from jupyter_gpupool.agent.devices.lock import DeviceLocks
from jupyter_gpupool.agent.keys import ProcessKey
from jupyter_gpupool.agent.procfs import ProcessId, ProcessRow
from jupyter_gpupool.agent.seen import Seen, Stage
from jupyter_gpupool.manager.certificates import ClaimSecrets, make_secrets
from jupyter_gpupool.pool.request import WorkerOptions
from jupyter_gpupool.protocol.link import (
    Desired,
    HostReport,
    Joined,
    ProcessPhase,
    TlsCredentials,
    WantedClaim,
    WantedScheduler,
    WantedWorker,
)

DEADLINE_S = 15.0
TOKEN = "gpt_a-token-of-the-tests"


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


class ManagerEnd:
    """Speaks the manager's side of the link protocol: says what should run, keeps reports."""

    def __init__(self) -> None:
        self.url = ""
        self.reports: list[HostReport] = []
        self.authorization = ""
        self.connections = 0
        self.wanted: dict[str, WantedClaim] = {}
        self.orphan_after_s = 3600.0
        self.clock_off = timedelta(0)
        self.token = TOKEN
        self.server: Server | None = None
        self._generation = 0
        self._socket: ServerConnection | None = None
        self._news = asyncio.Condition()
        self._is_alone = asyncio.Event()

    async def serve_connection(self, socket: ServerConnection) -> None:
        """One agent's connection, from its first report to its end."""
        self.connections += 1
        self.authorization = socket.request.headers.get("Authorization", "")
        self._socket = None
        self._is_alone.clear()
        with contextlib.suppress(ConnectionClosed):
            async for text in socket:
                await self._take(socket, HostReport.model_validate_json(text))
        self._is_alone.set()

    async def _take(self, socket: ServerConnection, report: HostReport) -> None:
        if self._socket is None:
            self._socket = socket
            await self._welcome(report)
        async with self._news:
            self.reports.append(report)
            self._news.notify_all()

    async def until_alone(self) -> None:
        """Wait until the agent's connection is over, and forget what it reported."""
        async with asyncio.timeout(DEADLINE_S):
            await self._is_alone.wait()
        self.reports.clear()

    async def want(self, *claims: WantedClaim) -> int:
        """From now on exactly these claims should run; the message's generation."""
        self.wanted = {claim.claim_id: claim for claim in claims}
        self._generation += 1
        await self.say(Desired(generation=self._generation, claims=tuple(claims)))
        return self._generation

    async def say(self, message: Desired) -> None:
        """Send a message as it is."""
        assert self._socket is not None, "no agent is there"
        await self._socket.send(message.model_dump_json())

    async def until(
        self, fits: Callable[[HostReport], bool], deadline_s: float = DEADLINE_S
    ) -> HostReport:
        """Wait for a report that fits; the latest one counts first."""
        async with self._news:
            try:
                async with asyncio.timeout(deadline_s):
                    while not (self.reports and fits(self.reports[-1])):
                        await self._news.wait()
            except TimeoutError:
                last = self.reports[-1] if self.reports else None
                pytest.fail(f"no report fits within {deadline_s} s; the last one: {last}")
            return self.reports[-1]

    def check_token(self, socket: ServerConnection, request: Request) -> Response | None:
        """Let in whoever has the token."""
        if request.headers.get("Authorization") == f"Bearer {self.token}":
            return None
        return socket.respond(HTTPStatus.UNAUTHORIZED, "not known here")

    async def close(self) -> None:
        """Go away for good."""
        assert self.server is not None
        self.server.close()
        await self.server.wait_closed()

    async def hang_up(self) -> None:
        """Close the connection, as a manager that is restarted does."""
        if self._socket is not None:
            socket, self._socket = self._socket, None
            await socket.close()

    async def _welcome(self, report: HostReport) -> None:
        joined = Joined(
            host_id=report.host_id,
            manager_time=datetime.now(UTC) + self.clock_off,
            orphan_after_s=self.orphan_after_s,
        )
        await self._socket.send(joined.model_dump_json())
        if self._generation:
            claims = tuple(self.wanted.values())
            await self.say(Desired(generation=self._generation, claims=claims))


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

    def close(self) -> None:
        """End everything it has started."""
        while left := self.marked():
            for row in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(row.id.pid, signal.SIGKILL)
        if self.popen is not None:
            self.popen.wait(10)
        if (self.state / "host-id").exists():
            ControlGroups((self.state / "host-id").read_text().strip()).tidy()


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


class ReportReader:
    """Reads what tests want to know from a report."""

    @staticmethod
    def all_run(schedulers: int, workers: int) -> Callable[[HostReport], bool]:
        """Whether a report shows exactly this many, and that all of them run."""

        def fits(report: HostReport) -> bool:
            rows = (*report.schedulers, *report.workers)
            counts = (len(report.schedulers), len(report.workers))
            return counts == (schedulers, workers) and {r.phase for r in rows} <= _RUNNING

        return fits

    @staticmethod
    def empty(report: HostReport) -> bool:
        """Whether a report shows nothing of any claim."""
        free = all(not found.state.in_use_by for found in report.devices)
        return free and not report.schedulers and not report.workers

    @staticmethod
    def pids(report: HostReport) -> dict[str, int | None]:
        """The pids in a report, by lease, the scheduler's as "scheduler"."""
        rows = (*report.schedulers, *report.workers)
        return {getattr(row, "lease_id", "scheduler"): row.pid for row in rows}


_RUNNING = {ProcessPhase.RUNNING}


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
