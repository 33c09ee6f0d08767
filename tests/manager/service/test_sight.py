"""What a pass remembers of the one before: the same as if it looked anew, whatever happened."""

import pytest

from jupyter_gpupool.manager.service.pool_view import build
from jupyter_gpupool.manager.service.sight import Remembered
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.device import DeviceState


def test_a_thing_of_the_same_parts_is_the_same():
    """Equal parts are not enough: what is equal today may be read anew tomorrow."""
    remembered, part = Remembered(), [1]
    first = remembered.of("a", (part,), object)
    remembered.next_round()
    assert remembered.of("a", (part,), object) is first
    assert remembered.of("a", ([1],), object) is not first


def test_what_nobody_asked_for_is_forgotten():
    """Claims that have ended take no room."""
    remembered, part = Remembered(), [1]
    first = remembered.of("a", (part,), object)
    remembered.next_round()
    remembered.next_round()
    assert remembered.of("a", (part,), object) is not first


@pytest.fixture
def agree(pool):
    """Sees that the view made of what is remembered is the one made anew."""

    def check() -> None:
        service, now_s = pool.service, pool.time.wall.timestamp()
        remembered = build(service.books, now_s, pool.time.monotonic_s, service.sight)
        assert remembered == build(service.books, now_s, pool.time.monotonic_s)

    return check


async def test_view_keeps_up_with_whatever_happens(pool, agree):
    """Grants, ends, failures, silence, sick devices, and time."""
    agent = await pool.joined("a", 3)
    claim, waiting = await pool.claim(1, 2), await pool.claim(3, user="bob")
    agree()
    await pool.come_up(agent)
    agree()
    agent.states = {agent.devices[2].uuid: DeviceState(held_elsewhere=True)}
    await pool.say(agent)
    agree()
    await pool.silent(agent)
    agree()
    await pool.join(agent)
    agent.workers[pool.leases(claim)[0].id] = "failed"
    await pool.say(agent)
    agree()
    await pool.pass_s(301)
    agree()
    await pool.release(claim)
    await pool.wind_down(agent)
    agree()
    assert pool.now(waiting).phase is Phase.PENDING
