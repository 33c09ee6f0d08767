"""What a commit stirs: no more than what a pass may see otherwise than before."""

import pytest

from jupyter_gpupool.manager.service.stirred import Journal, Stirred
from jupyter_gpupool.pool.device import DeviceState


@pytest.fixture
def stirred(pool):
    """Gives what has been stirred since it was asked last."""
    at = 0

    def since() -> Stirred:
        nonlocal at
        found = pool.service.books.journal.since(at)
        at = pool.service.books.journal.at
        return found

    return since


async def test_report_without_news_stirs_nothing(pool, stirred):
    """Every host reports every second."""
    agent = await pool.joined()
    await pool.claim(1)
    await pool.come_up(agent)
    stirred()
    await pool.say(agent)
    assert not stirred()


async def test_device_that_is_not_well_stirs_its_host_alone(pool, stirred):
    """No claim depends on what becomes of a device that it does not hold."""
    await pool.joined("b")
    agent = await pool.joined("a")
    stirred()
    agent.states = {agent.devices[0].uuid: DeviceState(held_elsewhere=True)}
    await pool.say(agent)
    assert stirred() == Stirred(hosts={"a": None})


async def test_claim_that_waits_stirs_itself_alone(pool, stirred):
    """Its place among all others is not a thing of the books."""
    await pool.joined(devices=0)
    stirred()
    claim = await pool.claim(1)
    assert stirred() == Stirred(claims={claim.id: None})


async def test_host_that_joins_stirs_all_claims(pool, stirred):
    """Some may run there, and some may not."""
    await pool.claim(1)
    stirred()
    await pool.joined()
    assert stirred().all_claims


def test_what_was_too_long_ago_is_not_told():
    """Whoever was away for so long looks at everything."""
    journal = Journal()
    for number in range(1001):
        journal.note(Stirred(claims={f"c{number}": None}))
    assert journal.since(0) is None
    assert len(journal.since(1).claims) == 1000
