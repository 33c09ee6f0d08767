"""How a claim that hibernates has devices again, or does not."""

from dataclasses import replace
from datetime import timedelta

import pytest
from manager_harness.hibernation import hibernate, resume

from jupyter_gpupool.manager.service.taking_back import take_now
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.lease import Notice
from jupyter_gpupool.protocol.keeping import Keeping, Unkept, UnkeptReason, Wish
from jupyter_gpupool.protocol.link import ProcessPhase


async def test_resumed_claim_queues_and_starts_with_the_scheduler_it_has(hibernated):
    """Same start, same address; results go back once it runs, and then no holder is wanted."""
    pool, agent, claim = hibernated
    before = pool.now(claim).scheduler
    other = await pool.claim(2, user="bob")
    assert (await resume(pool, claim)).phase is Phase.RESUMING
    assert pool.service.waits.of(claim.id).place == 1
    await pool.release(other)
    await pool.wind_down(agent)
    assert pool.now(claim).phase is Phase.STARTING
    assert pool.service.books.claims[claim.id].start == 1
    [wanted] = [c for c in pool.desired(agent).claims if c.claim_id == claim.id]
    assert wanted.scheduler.wish is Wish.HIBERNATED
    await pool.come_up(agent)
    [wanted] = pool.desired(agent).claims
    assert (pool.now(claim).phase, wanted.scheduler.wish) == (Phase.RUNNING, Wish.AWAKE)
    assert pool.now(claim).scheduler == before
    await pool.come_up(agent)
    [wanted] = pool.desired(agent).claims
    assert (pool.now(claim).hibernation, wanted.holder) == (None, None)


async def test_start_that_fails_thrice_leaves_it_hibernated(hibernated):
    """Its results are still kept: its user may try again."""
    pool, agent, claim = hibernated
    await resume(pool, claim)
    phases = []
    for _ in range(3):
        await pool.make_so(agent)
        agent.workers = dict.fromkeys(agent.workers, ProcessPhase.FAILED)
        await pool.say(agent)
        phases.append(pool.now(claim).phase)
        await pool.wind_down(agent)
    assert phases == [Phase.RESUMING, Phase.RESUMING, Phase.HIBERNATED]
    assert pool.now(claim).hibernation.results == 3
    assert pool.leases(claim) == []


async def test_each_try_to_resume_has_all_its_time(hibernated):
    """The next one may begin in the very moment in which the one before took too long."""
    pool, _, claim = hibernated
    await pool.joined("b", 2)
    await resume(pool, claim)
    within_s = pool.service.settings.start_within_s
    await pool.pass_s(within_s)
    tries = [pool.now(claim)]
    await pool.pass_s(within_s / 2)
    tries.append(pool.now(claim))
    assert [(each.phase, each.failed_starts) for each in tries] == [(Phase.STARTING, 1)] * 2


@pytest.mark.parametrize(
    ("late_s", "phase"), [(0, Phase.RUNNING), (599, Phase.RUNNING), (601, Phase.ENDING)]
)
async def test_nobody_takes_it_while_its_results_come_back(hibernated, late_s, phase):
    """They would be lost; one that never gets them back is taken in the end."""
    pool, agent, claim = hibernated
    await resume(pool, claim)
    await pool.come_up(agent)
    before = pool.now(claim)
    assert (before.phase, before.hibernation is None) == (Phase.RUNNING, False)

    def take(unit):
        notice = Notice(
            deadline=unit.now - timedelta(seconds=late_s), claimants=(ClaimId("c-waits"),)
        )
        for lease in list(unit.leases_of(claim.id)):
            unit.put_lease(replace(lease, notice=notice))
        take_now(unit, claim.id)

    await pool.service.execute(take)
    assert pool.now(claim).phase is phase


async def test_claim_that_could_not_be_started_waits_for_its_user(hibernated):
    """However much its tasks wait: it would fail for ever."""
    pool, agent, claim = hibernated
    agent.keepings[claim.id] = replace(agent.keepings[claim.id], wanted=True)
    await pool.say(agent)
    for _ in range(3):
        agent.make_so(pool.desired(agent))
        agent.workers = dict.fromkeys(agent.workers, ProcessPhase.FAILED)
        await pool.say(agent)
        await pool.wind_down(agent)
    await pool.say(agent)
    assert pool.now(claim).phase is Phase.HIBERNATED
    assert (await resume(pool, claim)).phase is Phase.STARTING


async def test_its_user_may_have_it_stop_waiting(hibernated):
    """Without losing what is kept, and for as long as it was told at first."""
    pool, _, claim = hibernated
    before = pool.now(claim)
    await pool.claim(2, user="bob")
    assert (await resume(pool, claim)).phase is Phase.RESUMING
    after = await hibernate(pool, claim)
    assert (after.phase, after.expires_at) == (Phase.HIBERNATED, before.expires_at)
    assert after.warning.deadline == before.warning.deadline


async def test_submitted_task_resumes_it(hibernated):
    """Its scheduler says that it was handed tasks since."""
    pool, agent, claim = hibernated
    agent.keepings[claim.id] = replace(agent.keepings[claim.id], wanted=True)
    await pool.say(agent)
    assert pool.now(claim).phase is Phase.STARTING


async def test_results_that_no_worker_can_read_are_told_and_stay(hibernated):
    """Once, with key and error; the claim has come back, and can hibernate or be taken again."""
    pool, agent, claim = hibernated
    unread = Unkept(
        key="thing-1", reason=UnkeptReason.UNREADABLE, detail="ModuleNotFoundError: of_mine"
    )
    agent.unread[claim.id] = (unread,)
    await resume(pool, claim)
    await pool.come_up(agent)
    await pool.come_up(agent)
    after = pool.now(claim)
    assert (after.phase, after.hibernation.unread) == (Phase.RUNNING, 1)
    assert "thing-1 (ModuleNotFoundError: of_mine)" in after.reason
    assert pool.desired(agent).claims[0].holder is not None
    await pool.say(agent)
    assert [e.reason for e in pool.service.hub.since(0)].count(after.reason) == 1
    assert (await hibernate(pool, claim)).phase is Phase.HIBERNATING


async def test_holder_goes_when_the_last_of_them_has_gone(hibernated):
    """Nobody wants it any more, or a worker could read it."""
    pool, agent, claim = hibernated
    agent.unread[claim.id] = (Unkept(key="thing-1", reason=UnkeptReason.UNREADABLE),)
    await resume(pool, claim)
    await pool.come_up(agent)
    await pool.come_up(agent)
    agent.keepings[claim.id] = Keeping()
    await pool.say(agent)
    assert pool.now(claim).hibernation is None
    assert pool.desired(agent).claims[0].holder is None
