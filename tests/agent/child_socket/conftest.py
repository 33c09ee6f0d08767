"""A socket that children connect to."""

import asyncio

import pytest
from agent_harness.child_ends import Child, SocketOwner


@pytest.fixture
async def agent(tmp_path):
    """Its owner, who notes what is said."""
    agent = SocketOwner(tmp_path / "agent.sock")
    await agent.socket.start()
    yield agent
    await agent.socket.close()


@pytest.fixture
async def connect(agent, tmp_path):
    """Connects children."""
    made = []

    async def connect():
        child = Child(*await asyncio.open_unix_connection(tmp_path / "agent.sock"))
        made.append(child)
        return child

    yield connect
    for child in made:
        child.writer.close()
