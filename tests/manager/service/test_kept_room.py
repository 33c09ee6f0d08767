"""What all claims may keep on one host, and all of one user: strict, and said in advance."""

from datetime import timedelta

import pytest
from manager_harness.hibernation import hibernate, resume
from manager_harness.idle_player import apply

from jupyter_gpupool.manager.api.keeping_views import keeping_view
from jupyter_gpupool.manager.service.arrows import take
from jupyter_gpupool.manager.service.idle_subjects import hibernation_possible
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import Warned
from jupyter_gpupool.pool.units import format_bytes

KIB = 1024
POLICY = """
[queues.default]
users = ["*"]
[hibernation]
{bound} = "100KiB"
"""


@pytest.fixture
def holding(pool):
    """Has a claim of some user run with results of so many bytes."""

    async def make(agent, nbytes, user="ann"):
        claim = await pool.claim(1, user=user)
        agent.results[claim.id] = nbytes
        await pool.come_up(agent)
        return claim

    return make


async def sleep(pool, agent, *claims):
    """Have them hibernate at the same moment."""
    for claim in claims:
        await hibernate(pool, claim, user=claim.owner)
    for _ in range(3):
        await pool.come_up(agent)
    await pool.wind_down(agent)
    return [pool.now(claim).phase for claim in claims]


async def test_host_keeps_no_more_than_its_bound(pool, holding):
    """Of two claims that hibernate together one runs on, and reads how much is left."""
    await apply(pool, POLICY.format(bound="quota_per_host"))
    agent = await pool.joined("a", 2)
    claims = await holding(agent, 70 * KIB), await holding(agent, 70 * KIB, user="bob")
    phases = await sleep(pool, agent, *claims)
    assert sorted(phases) == [Phase.HIBERNATED, Phase.RUNNING]
    refused = claims[phases.index(Phase.RUNNING)]
    reason = pool.now(refused).reason
    assert "they take 70 KiB, and of the 100 KiB that the host" in reason
    assert f"{format_bytes(30 * KIB)} are left" in reason
    assert len(pool.leases(refused)) == 1


async def test_other_host_has_room_of_its_own(pool, holding):
    """The bound is each host's."""
    await apply(pool, POLICY.format(bound="quota_per_host"))
    one, other = await pool.joined("a", 1), await pool.joined("b", 1)
    first, second = await holding(one, 70 * KIB), await holding(other, 70 * KIB)
    assert await sleep(pool, one, first) == [Phase.HIBERNATED]
    assert await sleep(pool, other, second) == [Phase.HIBERNATED]


@pytest.mark.parametrize(("user", "phase"), [("ann", Phase.RUNNING), ("bob", Phase.HIBERNATED)])
async def test_user_keeps_no_more_than_their_bound(pool, holding, user, phase):
    """On whatever hosts; another user has room of their own."""
    await apply(pool, POLICY.format(bound="quota_per_user"))
    one, other = await pool.joined("a", 1), await pool.joined("b", 1)
    first, second = await holding(one, 70 * KIB), await holding(other, 70 * KIB, user=user)
    await sleep(pool, one, first)
    assert await sleep(pool, other, second) == [phase]
    assert ("the pool keeps for ann" in pool.now(second).reason) is (user == "ann")


async def test_room_is_free_again_when_results_are_back(pool, holding):
    """And whoever is refused may ask again."""
    await apply(pool, POLICY.format(bound="quota_per_host"))
    agent = await pool.joined("a", 2)
    first, second = await holding(agent, 70 * KIB), await holding(agent, 70 * KIB, user="bob")
    assert await sleep(pool, agent, first) == [Phase.HIBERNATED]
    assert await sleep(pool, agent, second) == [Phase.RUNNING]
    await resume(pool, first)
    for _ in range(2):
        await pool.come_up(agent)
    assert await sleep(pool, agent, second) == [Phase.HIBERNATED]


async def test_it_is_said_before_anything_is_taken(pool, holding):
    """A claim that is warned reads it, and its rule does what it does otherwise."""
    await apply(pool, POLICY.format(bound="quota_per_host"))
    agent = await pool.joined("a", 2)
    first, second = await holding(agent, 70 * KIB), await holding(agent, 70 * KIB, user="bob")
    await sleep(pool, agent, first)

    def warn(unit):
        take(unit, second.id, Warned(reason="Idle.", rule="idle", after=timedelta(minutes=5)))

    await pool.service.execute(warn)
    await pool.come_up(agent)
    books = pool.service.books
    record = books.claims[second.id]
    assert "quota_per_host" in keeping_view(record, books).problem
    assert not hibernation_possible(books, record)


async def test_without_a_bound_nobody_waits_for_room(pool, holding):
    """A claim's own quota holds alone, as before."""
    agent = await pool.joined("a", 1)
    claim = await holding(agent, 70 * KIB)
    await hibernate(pool, claim)
    assert pool.desired(agent).claims[0].holder is not None
