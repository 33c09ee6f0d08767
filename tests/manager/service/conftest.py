"""Claims that hibernate."""

import pytest
from manager_harness.hibernation import DAY, hibernate


@pytest.fixture
async def running(pool):
    """A claim of both devices of a host, with three results."""
    agent = await pool.joined("a", 2)
    claim = await pool.claim(2, time_limit=3 * DAY)
    agent.results[claim.id] = 3
    await pool.come_up(agent)
    return pool, agent, claim


@pytest.fixture
async def hibernated(running):
    """The same, hibernated, with its devices free."""
    pool, agent, claim = running
    await hibernate(pool, claim)
    await pool.come_up(agent)
    await pool.wind_down(agent)
    return pool, agent, claim
