"""A manager's service in virtual time, with its agents.

The service, its commands and the scheduling pass are the real ones.
"""

from dataclasses import dataclass, field
from functools import partial

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.service.claims import (
    ReleaseClaim,
    RequestClaim,
    release_claim,
    request_claim,
)
from jupyter_gpupool.manager.service.hosts import HostSaid, host_lost, host_said, host_silent
from jupyter_gpupool.manager.service.scaling import ScaleClaim, scale_claim
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.service.timer import Timer
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.claim import Claim
from jupyter_gpupool.pool.ids import ClaimId, HostId, UserName
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.protocol.link import (
    Desired,
)

from .agent_player import AgentPlayer, an_agent
from .remembering_store import RememberingStore
from .virtual_time import ManualClock


@dataclass
class PoolPlayer:
    """A service in virtual time with its agents: what tests of the service talk to."""

    service: Service
    store: RememberingStore
    time: ManualClock
    agents: dict[HostId, AgentPlayer] = field(default_factory=dict)

    def host(self, name: str, devices: int = 2, *, durable: bool = False) -> AgentPlayer:
        """A host that has not joined yet."""
        agent = an_agent(name, devices, *(["durable"] if durable else []))
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


async def start_pool() -> PoolPlayer:
    """A pool without hosts; whoever starts it closes its service."""
    time, store = ManualClock(), RememberingStore()
    service = Service(store, Settings(), time.clock())
    await service.start()
    return PoolPlayer(service, store, time)
