"""The manager's end of an agent's link."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import pytest
from websockets.asyncio.server import Request, Response, Server, ServerConnection
from websockets.exceptions import ConnectionClosed

from jupyter_gpupool.protocol.link import (
    Desired,
    HostReport,
    Joined,
    LookNow,
    ProcessPhase,
    WantedClaim,
)

DEADLINE_S = 30.0
TOKEN = "gpt_a-token-of-the-tests"
_RUNNING = {ProcessPhase.RUNNING}


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

    async def say(self, message: Desired | LookNow) -> None:
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
