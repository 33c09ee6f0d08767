"""Hibernation as the manager sees it: what is asked, what agents say, what users are told."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from jupyter_gpupool.manager.service.hibernating import (
    HibernateClaim,
    ResumeClaim,
    hibernate_claim,
    resume_claim,
)
from jupyter_gpupool.manager.service.kept_results import keeping_events
from jupyter_gpupool.manager.service.once import OnceKey
from jupyter_gpupool.manager.service.taking_back import take_now
from jupyter_gpupool.manager.service.telling import MOST_TOLD, WINDOW_S
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.errors import Conflict, NotFound
from jupyter_gpupool.pool.hibernation import HibernationTerms
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.lease import LeasePhase, Notice
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.protocol.keeping import Keeping, KeepPhase, Unkept, UnkeptReason, Wish
from jupyter_gpupool.protocol.link import ProcessPhase

DAY = timedelta(days=1)


async def hibernate(pool, claim, user="ann", role=Role.USER, key=None):
    """A user wants its devices given back."""
    command = HibernateClaim(caller=pool.user(user, role), claim_id=claim.id, key=key)
    await pool.service.execute(partial(hibernate_claim, command=command))
    return pool.now(claim)


async def resume(pool, claim, user="ann"):
    """A user wants devices for it again."""
    command = ResumeClaim(caller=pool.user(user), claim_id=claim.id)
    await pool.service.execute(partial(resume_claim, command=command))
    return pool.now(claim)


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


async def test_submitted_task_resumes_it(hibernated):
    """Its scheduler says that it was handed tasks since."""
    pool, agent, claim = hibernated
    agent.keepings[claim.id] = replace(agent.keepings[claim.id], wanted=True)
    await pool.say(agent)
    assert pool.now(claim).phase is Phase.STARTING


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
