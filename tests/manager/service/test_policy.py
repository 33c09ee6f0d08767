"""The policy in the manager's books: who may claim where, and what stays of it."""

from functools import partial

import pytest

from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.records import PolicyRevision
from jupyter_gpupool.pool.errors import BadRequest, Conflict, NotAllowed
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.ids import UserName

TEAMS = """
[queues.vision]
guarantee = { gpus = 2 }
users = ["ann"]
per_user = { claims = 1 }
[queues.others]
users = ["*"]
"""


async def apply(pool, source: str) -> int:
    """Have a policy applied by its admin."""
    command = ApplyPolicy(source=source, by=UserName("root"))
    return await pool.service.execute(partial(apply_policy, command=command))


async def test_claim_goes_to_the_queue_of_its_user(pool):
    """Fixed when it is made; a wanted one is taken if it is theirs."""
    await apply(pool, TEAMS)
    assert (await pool.claim()).request.queue == "vision"
    assert (await pool.claim(queue="others")).request.queue == "others"
    assert (await pool.claim(user="bob")).request.queue == "others"


async def test_claim_in_anothers_queue_is_refused(pool):
    """In one sentence, with those that are theirs."""
    await apply(pool, TEAMS)
    with pytest.raises(NotAllowed, match='queue="others"'):
        await pool.claim(user="bob", queue="vision")
    with pytest.raises(BadRequest, match="no priority"):
        await pool.claim(priority="urgent")


async def test_user_has_no_more_claims_than_the_queue_allows(pool):
    """Those that have ended do not count."""
    await apply(pool, TEAMS)
    first = await pool.claim()
    with pytest.raises(Conflict, match='1 claim in queue "vision"'):
        await pool.claim()
    await pool.release(first)
    assert (await pool.claim()).request.queue == "vision"


async def test_policy_is_kept_as_a_revision(pool):
    """The same document again is no new one."""
    assert [await apply(pool, TEAMS), await apply(pool, TEAMS), await apply(pool, TEAMS + "#")] == [
        1,
        1,
        2,
    ]
    kept = [policy for changes in pool.store.commits for policy in changes.new_policies]
    assert kept[0] == PolicyRevision(
        revision=1, at=pool.time.wall, by=UserName("root"), source=TEAMS
    )
    told = [event.kind for changes in pool.store.commits for event in changes.events]
    assert told == [EventKind.POLICY_APPLIED] * 2


async def test_more_guarantees_than_devices_are_refused(pool):
    """With the numbers; and what was in force stays so."""
    await pool.joined("a", 1)
    with pytest.raises(BadRequest, match=r"add up to 2 devices, but the pool has 1 devices"):
        await apply(pool, TEAMS)
    assert pool.service.books.policy.revision == 0


async def test_host_that_is_lost_makes_no_policy_wrong(pool):
    """It is away for a minute; what it has counts until the pool has forgotten it."""
    agent = await pool.joined("a", 2)
    await pool.lost(agent)
    await pool.joined("b", 1)
    assert await apply(pool, TEAMS) == 1
    with pytest.raises(BadRequest, match="but the pool has 3 devices"):
        await apply(pool, TEAMS.replace("gpus = 2", "gpus = 4"))


async def test_policy_outlives_a_restart(site):
    """It is loaded as it was applied last."""
    service = site.parts.service
    command = ApplyPolicy(source=TEAMS, by=UserName("root"))
    await service.execute(partial(apply_policy, command=command))
    (found,) = service.store.load().policies
    assert (found.revision, found.source) == (1, TEAMS)
