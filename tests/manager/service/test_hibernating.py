"""Hibernation as the manager sees it: what is asked, what agents say, what users are told."""

from dataclasses import replace

import pytest
from manager_harness.hibernation import DAY, hibernate, resume

from jupyter_gpupool.manager.service.kept_results import keeping_events
from jupyter_gpupool.manager.service.once import OnceKey
from jupyter_gpupool.manager.service.telling import MOST_TOLD, WINDOW_S
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.errors import Conflict, NotFound
from jupyter_gpupool.pool.hibernation import HibernationTerms
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.protocol.keeping import Keeping, KeepPhase, Unkept, UnkeptReason, Wish
from jupyter_gpupool.protocol.link import ProcessPhase


async def test_worker_on_another_host_is_known_to_go(pool):
    """Its own agent must not start it again; its scheduler is not told to retire it by itself."""
    durable, agent = await pool.joined("d", 0, durable=True), await pool.joined("a", 1)
    claim = await pool.claim(1)
    await pool.come_up(durable, agent)
    await pool.come_up(durable)
    await hibernate(pool, claim)
    [here], [there] = pool.desired(durable).claims, pool.desired(agent).claims
    assert (here.scheduler.wish, here.scheduler.retire) == (Wish.HIBERNATED, ())
    assert here.holder is not None
    assert (there.holder, [worker.retire for worker in there.workers]) == (None, [True])
    await pool.come_up(durable)
    await pool.wind_down(agent)
    assert (pool.now(claim).phase, pool.leases(claim)) == (Phase.HIBERNATED, [])


async def test_scheduler_and_holder_are_wanted_and_no_worker(hibernated):
    """On the scheduler's host, for as long as it hibernates."""
    pool, agent, claim = hibernated
    assert (pool.now(claim).phase, pool.leases(claim)) == (Phase.HIBERNATED, [])
    [wanted] = pool.desired(agent).claims
    assert (wanted.scheduler.wish, wanted.workers) == (Wish.HIBERNATED, ())
    assert wanted.holder.quota_bytes == 64 * 2**30


async def test_devices_go_to_others_once_they_are_proven_free(running):
    """Not when the results are safe, but when the workers are gone."""
    pool, agent, claim = running
    await hibernate(pool, claim)
    other = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    assert pool.now(claim).phase is Phase.HIBERNATED
    assert pool.now(other).phase is Phase.PENDING
    await pool.wind_down(agent)
    assert pool.now(other).phase is Phase.STARTING


async def test_claim_runs_on_if_a_result_cannot_be_kept(running):
    """With all its workers, and its user reads which result it is."""
    pool, agent, claim = running
    agent.unkept[claim.id] = (Unkept(key="counter-1", reason=UnkeptReason.ACTOR),)
    await hibernate(pool, claim)
    await pool.come_up(agent)
    after = pool.now(claim)
    assert (after.phase, after.end) == (Phase.RUNNING, None)
    assert "counter-1 is an actor, which cannot move" in after.reason
    assert [lease.phase for lease in pool.leases(claim)] == [LeasePhase.RUNNING] * 2
    await pool.come_up(agent)
    assert pool.now(claim).hibernation is None


async def test_claim_runs_on_if_its_holder_does_not_stay(running):
    """Nothing was taken from it yet."""
    pool, agent, claim = running
    await hibernate(pool, claim)
    await pool.make_so(agent)
    agent.holders[claim.id] = ProcessPhase.FAILED
    await pool.say(agent)
    assert pool.now(claim).phase is Phase.RUNNING
    assert "nothing holds them" in pool.now(claim).reason


async def test_claim_runs_on_if_keeping_its_results_takes_too_long(running):
    """Its workers are its own again."""
    pool, _, claim = running
    await hibernate(pool, claim)
    await pool.pass_s(601)
    assert pool.now(claim).phase is Phase.RUNNING
    assert all(lease.counts for lease in pool.leases(claim))


async def test_time_limit_stands_still_meanwhile(hibernated):
    """A week of sleep costs none of its three days; how long results are kept is told at once."""
    pool, agent, claim = hibernated
    kept = pool.now(claim)
    assert kept.expires_at == kept.phase_since + 7 * DAY
    assert (kept.warning.rule, kept.warning.deadline) == ("kept-results", kept.expires_at)
    await pool.pass_s(6 * DAY.total_seconds())
    await pool.join(agent)
    after = await resume(pool, claim)
    assert (after.phase, after.expires_at) == (Phase.STARTING, pool.time.wall + 3 * DAY)


async def test_results_are_kept_for_as_long_as_the_policy_says(hibernated):
    """Then the claim ends, and says why."""
    pool, _, claim = hibernated
    await pool.pass_s(7 * DAY.total_seconds() + 1)
    assert (pool.now(claim).phase, pool.now(claim).end) == (Phase.ENDING, EndKind.EXPIRED)
    assert "for as long as the pool keeps any" in pool.now(claim).reason


async def test_lost_holder_is_told_once(hibernated):
    """Which results are computed again and which are gone; the claim lives on."""
    pool, agent, claim = hibernated
    said = "The holder ended and took results along."
    lost = replace(
        agent.keepings[claim.id], phase=KeepPhase.LOST, held=0, again=2, gone=1, problem=said
    )
    agent.keepings[claim.id] = lost
    await pool.say(agent)
    await pool.say(agent)
    after = pool.now(claim)
    assert (after.phase, after.reason) == (Phase.HIBERNATED, said)
    assert (after.hibernation.again, after.hibernation.gone) == (2, 1)
    assert [e.reason for e in pool.service.hub.since(0)].count(said) == 1


async def test_scheduler_that_counts_its_losses_anew_is_told_of_seldom(hibernated):
    """It writes no event a report; what it said last is told in the end."""
    pool, agent, claim = hibernated
    before = len(pool.service.hub.since(0))
    for lost in range(1, 100):
        agent.keepings[claim.id] = replace(agent.keepings[claim.id], gone=lost, problem="Lost.")
        await pool.say(agent)
    assert len(pool.service.hub.since(0)) - before <= MOST_TOLD
    pool.time.pass_s(WINDOW_S)
    await pool.say(agent)
    assert pool.now(claim).hibernation.gone == 99


async def test_loss_is_told_before_what_rests_on_it(hibernated):
    """Though much was told of it already, for it would not be said again."""
    pool, agent, claim = hibernated
    for lost in range(1, 100):
        agent.keepings[claim.id] = replace(agent.keepings[claim.id], gone=lost, problem="Lost.")
        await pool.say(agent)
    agent.keepings[claim.id] = replace(agent.keepings[claim.id], wanted=True)
    await pool.say(agent)
    after = pool.now(claim)
    assert (after.phase, after.hibernation.gone) == (Phase.STARTING, 99)


async def test_claim_ends_with_the_host_of_its_scheduler(hibernated):
    """And with it what was kept there."""
    pool, agent, claim = hibernated
    await pool.lost(agent)
    assert (pool.now(claim).phase, pool.now(claim).end) == (Phase.ENDED, EndKind.FAILED)


async def test_host_with_a_scheduler_is_not_empty(hibernated):
    """Nobody drains what holds results."""
    pool, agent, claim = hibernated
    assert agent.host_id not in pool.service.emptiness.since_s
    await pool.release(claim)
    await pool.wind_down(agent)
    assert agent.host_id in pool.service.emptiness.since_s


async def test_accounting_stands_still_meanwhile(hibernated):
    """Nothing is held, so nothing is charged."""
    pool, _, _ = hibernated
    assert [used.decayed.held for used in pool.service.books.usage.values()] == [0]


async def test_asking_again_changes_nothing(running):
    """Neither with the same key nor without."""
    pool, agent, claim = running
    key = OnceKey(user="ann", key="k", body="b")
    assert (await hibernate(pool, claim, key=key)).phase is Phase.HIBERNATING
    seq = pool.service.books.seq
    assert (await hibernate(pool, claim, key=key)).phase is Phase.HIBERNATING
    assert (await hibernate(pool, claim)).phase is Phase.HIBERNATING
    assert pool.service.books.seq == seq
    await pool.come_up(agent)
    await pool.wind_down(agent)
    await resume(pool, claim)
    seq = pool.service.books.seq
    await resume(pool, claim)
    assert pool.service.books.seq == seq


async def test_stranger_does_not_know_of_it(running):
    """Its owner and admins may ask."""
    pool, _, claim = running
    with pytest.raises(NotFound):
        await hibernate(pool, claim, user="eve")
    with pytest.raises(NotFound):
        await resume(pool, claim, user="eve")
    assert (await hibernate(pool, claim, user="root", role=Role.ADMIN)).phase is Phase.HIBERNATING
    assert "by root" in pool.now(claim).reason


async def test_only_a_claim_that_runs_hibernates(pool):
    """One that waits is told where it is."""
    await pool.joined("a", 1)
    claim = await pool.claim(2)
    with pytest.raises(Conflict, match="is pending"):
        await hibernate(pool, claim)
    with pytest.raises(Conflict, match="is pending"):
        await resume(pool, claim)


async def test_late_word_of_an_earlier_time_is_not_taken_for_this_one(hibernated):
    """Resumed, but its scheduler has not heard of it yet: no result is taken to be back."""
    pool, agent, claim = hibernated
    await resume(pool, claim)
    before = agent.keepings[claim.id]
    agent.make_so(pool.desired(agent))
    agent.workers = dict.fromkeys(agent.workers, ProcessPhase.RUNNING)
    agent.keepings[claim.id] = before
    await pool.say(agent)
    assert (pool.now(claim).phase, pool.now(claim).hibernation.results) == (Phase.RUNNING, 3)
    with pytest.raises(Conflict, match="still on their way back"):
        await hibernate(pool, claim)


@pytest.mark.parametrize(
    ("keep_s", "said"), [(600.0, "10 min"), (90_000.0, "1 d 1 h"), (86_400.0, "1 d")]
)
async def test_how_long_results_are_kept_is_said_in_peoples_units(running, keep_s, said):
    """Ten minutes are no part of a day."""
    pool, _, claim = running
    asked = await hibernate(pool, claim)
    kept = Keeping(phase=KeepPhase.HIBERNATED, wish=Wish.HIBERNATED, held=1)
    (told,) = keeping_events(asked, kept, None, HibernationTerms(keep_s=keep_s))
    assert f"kept for {said} at most" in told.reason


@pytest.mark.parametrize(
    ("itself", "said"), [(True, "a task that is"), (False, "what is submitted waits")]
)
async def test_how_a_claim_without_results_goes_on_is_said(running, itself, said):
    """Nobody is told to wait for what a task would bring about."""
    pool, _, claim = running
    asked = await hibernate(pool, claim)
    kept = Keeping(phase=KeepPhase.HIBERNATED, wish=Wish.HIBERNATED)
    (told,) = keeping_events(asked, kept, None, HibernationTerms(resumes_itself=itself))
    assert said in told.reason
