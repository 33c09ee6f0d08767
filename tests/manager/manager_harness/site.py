"""The real service on a real database, behind the real HTTP application."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
from fastapi import FastAPI

from jupyter_gpupool.manager.api.parts import Parts
from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.service.hosts import HostSaid, host_said
from jupyter_gpupool.manager.service.tokens import MakeToken, make_token
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

from .agent_player import AgentPlayer, an_agent


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
        return an_agent(name, devices)

    async def come_up(self, agent: AgentPlayer) -> None:
        """The host starts what is wanted until all of it runs."""
        agent.make_so(self.parts.service.outboxes.of(agent.host_id).desired)
        agent.all_run()
        await self.say(agent)
