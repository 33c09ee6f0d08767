"""What a pass remembers of the one before: the same as if it looked anew, whatever happened."""

import pytest

from jupyter_gpupool.manager.service.claims import RequestClaim, request_claim
from jupyter_gpupool.manager.service.pool_view import build
from jupyter_gpupool.manager.service.sight import Seen
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.device import DeviceState
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds


def test_what_is_as_before_is_the_same():
    """What is equal is not looked at again: whoever keeps books goes by the object."""
    seen, first = Seen(), [1]
    seen.keep("a", first)
    assert seen.keep("a", [1]) is first
    assert seen.keep("a", [2]) == [2]


def test_what_no_pass_sees_keeps_its_place():
    """A claim that sleeps comes back where the books have it, whatever is looked at anew."""
    seen = Seen()
    for key in "abc":
        seen.keep(key, key)
    seen.keep("a", None)
    assert seen.all() == ("b", "c")
    seen.begin_anew("cbad")
    seen.keep("a", "a")
    assert seen.all() == ("a", "b", "c")


def test_what_is_gone_is_forgotten():
    """Claims that have ended take no room."""
    seen = Seen()
    seen.keep("a", "a")
    seen.forget("a")
    assert (seen.all(), seen.get("a")) == ((), None)


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


async def test_what_comes_to_nothing_is_seen_no_more(pool, agree):
    """A unit of work that is dropped, as after a commit that failed, leaves no trace."""
    agent = await pool.joined("a", 3)
    claim = await pool.claim(1)
    await pool.come_up(agent)
    unit = pool.service.preview()
    [lease] = pool.leases(claim)
    unit.put_lease(lease.moved(LeasePhase.ENDED, "It is only a thought.", unit.now))
    request = ClaimRequest(workers=WorkerBounds(1, 1))
    request_claim(unit, RequestClaim(caller=pool.user("bob"), request=request))
    seen = build(unit, unit.now.timestamp(), pool.time.monotonic_s, pool.service.sight)
    assert [(each.owner, each.held) for each in seen.claims] == [("ann", ()), ("bob", ())]
    agree()


async def test_nobody_but_those_concerned_is_looked_at(pool):
    """One claim more among many: all others are the very same objects."""
    agent = await pool.joined("a", 1)
    await pool.claim(1)
    await pool.come_up(agent)
    claims = [await pool.claim(1, user="bob") for _ in range(3)]
    before = pool.service.look()
    await pool.release(claims[1])
    await pool.say(agent)
    after = pool.service.look()
    assert len(after.claims) == len(before.claims) - 1
    assert {id(each) for each in after.claims} <= {id(each) for each in before.claims}
    assert after.hosts[0] is before.hosts[0]
