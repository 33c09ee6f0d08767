"""A manager's service in virtual time, a store that only remembers, and agents that play along.

The service, its commands and the scheduling pass are the real ones; the store and the agents are
small stand-ins for the disk and for what lies behind the wire.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from jupyter_gpupool.manager.api.application import make_application
from jupyter_gpupool.manager.api.parts import Parts
from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.auth.sessions import Sessions
from jupyter_gpupool.manager.auth.tokens import TokenAuthenticator
from jupyter_gpupool.manager.clock import Clock
from jupyter_gpupool.manager.metrics import Metrics
from jupyter_gpupool.manager.service.claims import (
    ReleaseClaim,
    RequestClaim,
    ScaleClaim,
    release_claim,
    request_claim,
    scale_claim,
)
from jupyter_gpupool.manager.service.hosts import HostSaid, host_lost, host_said, host_silent
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.service.timer import Timer
from jupyter_gpupool.manager.service.tokens import MakeToken, make_token
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.manager.store.changes import Changes
from jupyter_gpupool.manager.store.reading import Everything
from jupyter_gpupool.manager.store.sealing import load_seal
from jupyter_gpupool.manager.store.store import Store
from jupyter_gpupool.pool.claim import Claim
from jupyter_gpupool.pool.device import Device, DeviceState
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, LeaseId, UserName
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.protocol.link import (
    Desired,
    DeviceReport,
    EnvironmentReport,
    HostReport,
    ProcessPhase,
    SchedulerReport,
    WorkerReport,
)

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NOTHING = Everything(
    claims=(),
    leases=(),
    hosts=(),
    host_tokens=(),
    tokens=(),
    users=(),
    once=(),
    events=(),
    boot=1,
)


@dataclass
class ManualClock:
    """Both clocks, turned by hand."""

    wall: datetime = START
    monotonic_s: float = 1000.0

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        self.wall += timedelta(seconds=seconds)
        self.monotonic_s += seconds

    def clock(self) -> Clock:
        """As the service takes it."""
        return Clock(now=lambda: self.wall, monotonic=lambda: self.monotonic_s)


@pytest.fixture
def manual_clock() -> ManualClock:
    """Both clocks, turned by hand."""
    return ManualClock()


@dataclass
class RememberingStore:
    """A store that keeps what was committed in a list, and fails when told to.

    Attributes:
        broken: It neither writes nor says so in time.
        mute: It writes, and its answer is lost.
        unreadable: Nobody can find out which of the two it was.
        refused: Name of a claim that no database can hold.
        tried: How many commits were begun.
    """

    everything: Everything = NOTHING
    commits: list[Changes] = field(default_factory=list)
    broken: bool = False
    mute: bool = False
    unreadable: bool = False
    has_written: bool = False
    refused: str = ""
    tried: int = 0

    def load(self) -> Everything:
        """What was there at start."""
        return self.everything

    async def commit(self, changes: Changes) -> None:
        """Remember, or fail."""
        await asyncio.sleep(0)
        self.tried += 1
        self.has_written = False
        if any(self.refused == record.claim.name != "" for record in changes.new_claims):
            raise UnicodeError("No database takes this.")
        self.has_written = not self.broken
        if self.broken:
            raise Unavailable("The database cannot be written: the disk is full.")
        self.commits.append(changes)
        if self.mute:
            raise Unavailable("The database cannot be written: the connection is lost.")

    async def settle(self) -> bool:
        """Whether the commit that failed came through."""
        await asyncio.sleep(0)
        if self.unreadable:
            raise Unavailable("The database cannot be read: the connection is lost.")
        return self.has_written

    async def prune(self, before: datetime, keys_before: datetime) -> None:
        """There is nothing to delete."""


@dataclass
class AgentPlayer:
    """A host's agent as the manager sees it: makes its `Desired` so and reports what is.

    Attributes:
        workers: Phase of each worker that physically is there, by lease.
        placed: Claim, start and device of each of those.
        schedulers: Phase of each scheduler, by claim; `starts` is which start it belongs to.
        environments: The Python environments it offers, the default first.
        runs_kernels: It runs claims in their kernel's own environment.
    """

    host_id: HostId
    devices: tuple[Device, ...]
    labels: tuple[str, ...] = ()
    generation: int = 0
    workers: dict[LeaseId, ProcessPhase] = field(default_factory=dict)
    placed: dict[LeaseId, tuple[ClaimId, int, DeviceUuid]] = field(default_factory=dict)
    schedulers: dict[ClaimId, ProcessPhase] = field(default_factory=dict)
    starts: dict[ClaimId, int] = field(default_factory=dict)
    states: dict[DeviceUuid, DeviceState] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    environments: tuple[EnvironmentReport, ...] = ()
    runs_kernels: bool = False

    def make_so(self, desired: Desired | None) -> None:
        """Start what is wanted, and begin to stop what is not."""
        if desired is None:
            return
        self.generation = desired.generation
        wanted = {w.lease_id: (c, w) for c in desired.claims for w in c.workers}
        schedulers = {c.claim_id: c for c in desired.claims if c.scheduler is not None}
        for lease_id in self.workers.keys() - wanted.keys():
            self.workers[lease_id] = ProcessPhase.STOPPING
        for claim_id in self.schedulers.keys() - schedulers.keys():
            self.schedulers[claim_id] = ProcessPhase.STOPPING
        for claim_id, claim in schedulers.items():
            if self.starts.get(claim_id) != claim.start:
                self.schedulers[claim_id] = ProcessPhase.STARTING
                self.starts[claim_id] = claim.start
        for lease_id, (claim, worker) in wanted.items():
            if lease_id not in self.workers:
                self.workers[lease_id] = ProcessPhase.STARTING
                self.placed[lease_id] = (claim.claim_id, claim.start, worker.device)

    def all_run(self) -> None:
        """Everything that starts has come up."""
        for phases in (self.workers, self.schedulers):
            for key, phase in phases.items():
                if phase is ProcessPhase.STARTING:
                    phases[key] = ProcessPhase.RUNNING

    def all_stopped(self) -> None:
        """Everything that had to stop is gone, and its device is proven free."""
        for phases in (self.workers, self.schedulers):
            for key in [k for k, phase in phases.items() if phase is ProcessPhase.STOPPING]:
                del phases[key]
                self.starts.pop(key, None)

    def report(self) -> HostReport:
        """All that is."""
        return HostReport(
            host_id=self.host_id,
            name=self.host_id,
            address="10.0.0.1",
            agent_pid=1,
            agent_version="0",
            generation=self.generation,
            at=START,
            cpus=8,
            memory_bytes=2**34,
            labels=self.labels,
            environments=tuple(each.name for each in self.environments),
            environment_reports=self.environments,
            kernel_environments=self.runs_kernels,
            devices=tuple(
                DeviceReport(device=d, state=self.states.get(d.uuid, DeviceState()))
                for d in self.devices
            ),
            schedulers=tuple(self._schedulers()),
            workers=tuple(self._workers()),
        )

    def _schedulers(self) -> Iterator[SchedulerReport]:
        for claim_id, phase in self.schedulers.items():
            runs = phase is ProcessPhase.RUNNING
            yield SchedulerReport(
                claim_id=claim_id,
                start=self.starts[claim_id],
                phase=phase,
                address=f"tls://10.0.0.1:{self.starts[claim_id]}" if runs else None,
                dashboard_port=8787 if runs else None,
                problem=self.problems.get(claim_id, ""),
            )

    def _workers(self) -> Iterator[WorkerReport]:
        for lease_id, phase in self.workers.items():
            claim_id, start, device = self.placed[lease_id]
            yield WorkerReport(
                claim_id=claim_id,
                start=start,
                lease_id=lease_id,
                device=device,
                phase=phase,
                problem=self.problems.get(lease_id, ""),
            )


def _agent(name: str, devices: int, *labels: str) -> AgentPlayer:
    uuids = [DeviceUuid(f"SIM-{name}-{n}") for n in range(devices)]
    made = tuple(
        Device(uuid=uuid, index=n, model="Sim 16", memory_bytes=2**34)
        for n, uuid in enumerate(uuids)
    )
    return AgentPlayer(HostId(name), made, labels)


@dataclass
class PoolPlayer:
    """A service in virtual time with its agents: what tests of the service talk to."""

    service: Service
    store: RememberingStore
    time: ManualClock
    agents: dict[HostId, AgentPlayer] = field(default_factory=dict)

    def host(self, name: str, devices: int = 2, *, durable: bool = False) -> AgentPlayer:
        """A host that has not joined yet."""
        agent = _agent(name, devices, *(["durable"] if durable else []))
        self.agents[agent.host_id] = agent
        return agent

    async def joined(self, name: str = "a", devices: int = 2, **more: bool) -> AgentPlayer:
        """A host that has joined."""
        agent = self.host(name, devices, **more)
        await self.join(agent)
        return agent

    async def join(self, agent: AgentPlayer) -> None:
        """Its agent connects: generation 0, then it hears its `Desired`."""
        agent.generation = 0
        await self.say(agent, joins=True)

    async def say(self, agent: AgentPlayer, *, joins: bool = False) -> None:
        """Its agent reports."""
        command = HostSaid(report=agent.report(), joins=joins)
        await self.service.execute(partial(host_said, command=command))

    async def make_so(self, agent: AgentPlayer) -> None:
        """Its agent takes up its `Desired` and reports."""
        agent.make_so(self.desired(agent))
        await self.say(agent)

    async def come_up(self, *agents: AgentPlayer) -> None:
        """These hosts start what is wanted until all of it runs."""
        for agent in agents:
            await self.make_so(agent)
            agent.all_run()
            await self.say(agent)

    async def wind_down(self, *agents: AgentPlayer) -> None:
        """These hosts stop what is not wanted until all of it is gone."""
        for agent in agents:
            await self.make_so(agent)
            agent.all_stopped()
            await self.say(agent)

    async def silent(self, agent: AgentPlayer) -> None:
        """Its link breaks."""
        await self.service.execute(partial(host_silent, host_id=agent.host_id))

    async def lost(self, agent: AgentPlayer) -> None:
        """It has been silent for too long."""
        await self.silent(agent)
        await self.service.execute(partial(host_lost, host_id=agent.host_id))

    async def claim(
        self, least: int = 1, most: int | None = None, user: str = "ann", **more
    ) -> Claim:
        """A user asks for a claim."""
        request = ClaimRequest(workers=WorkerBounds(least, most or least), **more)
        command = RequestClaim(caller=self.user(user), request=request)
        claim_id = await self.service.execute(partial(request_claim, command=command))
        return self.now(claim_id)

    async def scale(self, claim: Claim, least: int, most: int) -> Claim:
        """Its owner wants other bounds."""
        command = ScaleClaim(
            caller=self.user(claim.owner), claim_id=claim.id, bounds=WorkerBounds(least, most)
        )
        return self.now(await self.service.execute(partial(scale_claim, command=command)))

    async def release(self, claim: Claim) -> Claim:
        """Its owner gives it back."""
        command = ReleaseClaim(caller=self.user(claim.owner), claim_id=claim.id)
        return self.now(await self.service.execute(partial(release_claim, command=command)))

    async def pass_s(self, seconds: float) -> None:
        """Let time pass, and do what is due."""
        self.time.pass_s(seconds)
        await Timer(self.service).run_due()

    def desired(self, agent: AgentPlayer) -> Desired | None:
        """What its host has been told."""
        return self.service.outboxes.of(agent.host_id).desired

    def leases(self, claim: Claim) -> list[Lease]:
        """Its leases that hold a device."""
        return list(self.service.books.leases_of(claim.id))

    def now(self, claim: Claim | ClaimId) -> Claim:
        """The claim as it is now."""
        return self.service.books.claims[claim if isinstance(claim, str) else claim.id].claim

    @staticmethod
    def user(name: str, role: Role = Role.USER) -> Caller:
        """A caller."""
        return Caller(user=UserName(name), role=role, credential_id="t")


async def _start_pool() -> PoolPlayer:
    time, store = ManualClock(), RememberingStore()
    service = Service(store, Settings(), time.clock())
    await service.start()
    return PoolPlayer(service, store, time)


@pytest.fixture
def start_pool() -> Callable[[], object]:
    """Starts pools, for tests that need many."""
    return _start_pool


@pytest.fixture
async def pool() -> AsyncIterator[PoolPlayer]:
    """A pool without hosts."""
    player = await _start_pool()
    yield player
    await player.service.close()


@dataclass
class Site:
    """The real service on a real database, behind the real HTTP application."""

    parts: Parts
    app: FastAPI
    folder: Path

    @staticmethod
    def admin() -> Caller:
        """The manager itself."""
        return Caller(user=UserName("manager"), role=Role.ADMIN, credential_id="")

    async def token(self, user: str, role: Role = Role.USER) -> str:
        """A new token's secret."""
        command = MakeToken(caller=self.admin(), user=UserName(user), role=role)
        make = partial(make_token, command=command, seal=self.parts.seal)
        return (await self.parts.service.execute(make)).secret

    async def client(self, user: str = "ann", role: Role = Role.USER) -> httpx.AsyncClient:
        """An HTTP client of this user."""
        headers = {"Authorization": f"Bearer {await self.token(user, role)}"}
        return self.anonymous(headers)

    def anonymous(self, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
        """An HTTP client of nobody."""
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://pool", headers=headers)

    async def say(self, agent: AgentPlayer, *, joins: bool = False) -> None:
        """An agent reports."""
        command = HostSaid(report=agent.report(), joins=joins)
        await self.parts.service.execute(partial(host_said, command=command))

    async def host(self, name: str = "a", devices: int = 2) -> AgentPlayer:
        """A host that has joined."""
        agent = self.agent(name, devices)
        await self.say(agent, joins=True)
        return agent

    @staticmethod
    def agent(name: str, devices: int) -> AgentPlayer:
        """A host that has not joined yet."""
        return _agent(name, devices)

    async def come_up(self, agent: AgentPlayer) -> None:
        """The host starts what is wanted until all of it runs."""
        agent.make_so(self.parts.service.outboxes.of(agent.host_id).desired)
        agent.all_run()
        await self.say(agent)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A site without hosts."""
    seal, clock = load_seal(tmp_path / "secret-key"), Clock()
    store = Store(f"sqlite:///{tmp_path / 'manager.sqlite'}", seal)
    service = Service(store, Settings(), clock)
    await service.start()
    timer, authenticator = Timer(service), TokenAuthenticator(service.books, clock)
    timer.start()
    parts = Parts(
        service=service,
        authenticator=authenticator,
        sessions=Sessions(clock, authenticator),
        seal=seal,
        metrics=Metrics(service),
        asked_s=0.0,
    )
    yield Site(parts, make_application(parts), tmp_path)
    await timer.close()
    await service.close()
    store.close()
