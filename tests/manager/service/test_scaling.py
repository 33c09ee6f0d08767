"""A claim that is scaled to no workers, or loses its last one, keeps what it has computed."""

from dataclasses import replace
from functools import partial

import pytest

from jupyter_gpupool.manager.service.scaling import retire_now
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import BadRequest, Conflict
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.request import WorkerBounds
from jupyter_gpupool.protocol.keeping import Unkept, UnkeptReason, Wish


@pytest.fixture
async def asleep(running):
    """A claim of two workers with three results, scaled to none."""
    pool, agent, claim = running
    await pool.scale(claim, 0, 0)
    await pool.come_up(agent)
    await pool.wind_down(agent)
    return pool, agent, claim


async def test_claim_without_workers_keeps_its_results(asleep):
    """Its devices are others', its results are safe, and its user is told where they are."""
    pool, agent, claim = asleep
    after = pool.now(claim)
    assert (after.phase, after.hibernation.results) == (Phase.HIBERNATED, 3)
    assert pool.leases(claim) == []
    assert "3 results" in after.reason
    [wanted] = pool.desired(agent).claims
    assert (wanted.scheduler.wish, wanted.scheduler.keep_workers) == (Wish.HIBERNATED, None)


async def test_scaling_up_resumes_it(asleep):
    """With as many workers as it is scaled to, and its results."""
    pool, agent, claim = asleep
    after = await pool.scale(claim, 0, 1)
    assert (after.phase, after.bounds) == (Phase.STARTING, WorkerBounds(0, 1))
    await pool.come_up(agent)
    await pool.come_up(agent)
    assert (pool.now(claim).phase, pool.now(claim).hibernation) == (Phase.RUNNING, None)
    assert len(pool.leases(claim)) == 1


async def test_submitted_task_does_not_resume_it(asleep):
    """Its user has said that it should have no worker."""
    pool, agent, claim = asleep
    agent.keepings[claim.id] = replace(agent.keepings[claim.id], wanted=True)
    await pool.say(agent)
    assert pool.now(claim).phase is Phase.HIBERNATED


async def test_scaling_up_half_way_calls_it_off(running):
    """Its workers had kept everything, and stay."""
    pool, agent, claim = running
    await pool.scale(claim, 0, 0)
    await pool.make_so(agent)
    after = await pool.scale(claim, 0, 2)
    assert (after.phase, after.reason) == (Phase.RUNNING, "Scaled to 0 to 2 workers.")
    assert [lease.phase for lease in pool.leases(claim)] == [LeasePhase.RUNNING] * 2


async def test_scaling_to_none_again_changes_nothing(asleep):
    """Nor does it while the first time is under way."""
    pool, _, claim = asleep
    before = pool.now(claim)
    assert await pool.scale(claim, 0, 0) == before


async def test_claim_whose_results_cannot_be_kept_keeps_its_workers(running):
    """Its user reads which result it is."""
    pool, agent, claim = running
    agent.unkept[claim.id] = (Unkept(key="counter-1", reason=UnkeptReason.ACTOR),)
    await pool.scale(claim, 0, 0)
    await pool.come_up(agent)
    after = pool.now(claim)
    assert (after.phase, after.bounds) == (Phase.RUNNING, WorkerBounds(0, 2))
    assert "counter-1 is an actor" in after.reason
    assert [lease.phase for lease in pool.leases(claim)] == [LeasePhase.RUNNING] * 2


async def test_claim_that_resumes_may_be_scaled_to_none(asleep):
    """It waits no more, and goes on when it is scaled up."""
    pool, _, claim = asleep
    await pool.claim(2, user="bob")
    assert (await pool.scale(claim, 0, 2)).phase is Phase.RESUMING
    assert (await pool.scale(claim, 0, 0)).phase is Phase.HIBERNATED
    assert (await pool.scale(claim, 0, 2)).phase is Phase.RESUMING


async def test_claim_whose_results_come_back_is_not_scaled_to_none(asleep):
    """They could not be kept again before they are there."""
    pool, agent, claim = asleep
    await pool.scale(claim, 0, 2)
    await pool.make_so(agent)
    with pytest.raises(BadRequest, match="without any worker"):
        await pool.scale(claim, 0, 0)
    agent.all_run()
    agent.keepings.clear()
    await pool.say(agent)
    with pytest.raises(Conflict, match="on their way back"):
        await pool.scale(claim, 0, 0)


@pytest.mark.parametrize(
    ("workers", "phase"), [(1, Phase.HIBERNATING), (2, Phase.RUNNING)], ids=["none", "another"]
)
async def test_last_worker_that_has_to_go_hibernates(pool, workers, phase):
    """Where another one is registered to take its results, it goes as it is at last."""
    agent = await pool.joined("a", workers)
    claim = await pool.claim(1, workers)
    await pool.come_up(agent)

    def retire(unit):
        lease = min(unit.leases_of(claim.id), key=lambda each: each.id)
        unit.put_lease(lease.moved(LeasePhase.RETIRING, "It has to go.", unit.now))

    await pool.service.execute(retire)
    await pool.service.execute(partial(retire_now, claim_id=claim.id))
    assert pool.now(claim).phase is phase
