"""Leases taken back for others: told first, carried out after the grace, kept for whoever waits."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.service.using import KeepClaim, keep_claim
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.device import DeviceState, Health
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.protocol.keeping import Unkept, UnkeptReason
from jupyter_gpupool.protocol.link import ProcessPhase

TEAMS = """
[queues.vision]
guarantee = { gpus = 2 }
users = ["ann"]
[queues.others]
users = ["*"]
[scheduling]
grace = "30s"
"""

LIMITED = """
[queues.lab]
guarantee = { gpus = 2 }
limit = { gpus = 2 }
[queues.vision]
parent = "lab"
guarantee = { gpus = 2 }
users = ["ann"]
[queues.others]
parent = "lab"
users = ["*"]
"""


@pytest.fixture
async def teams(pool):
    """A host of two devices, of which ann's queue is guaranteed both."""
    agent = await pool.joined("a", 2)
    command = ApplyPolicy(source=TEAMS, by=UserName("root"))
    await pool.service.execute(partial(apply_policy, command=command))
    return pool, agent


async def test_busy_claim_is_warned_before_its_devices_go(teams):
    """It runs on until the grace is over, and knows why."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    ann = await pool.claim(2)
    warned = pool.now(bob)
    assert warned.phase is Phase.RUNNING
    assert (warned.warning.deadline - pool.time.wall).total_seconds() == 30
    assert "2 workers needed by vision/ann" in warned.warning.reason
    assert pool.now(ann).phase is Phase.PENDING
    assert "being freed for it" in pool.service.waits.of(ann.id).reason


async def test_claim_without_worker_left_hibernates(teams):
    """And whoever waited has its devices as soon as they are proven free."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    ann = await pool.claim(2)
    await pool.pass_s(31)
    assert (pool.now(bob).phase, pool.now(bob).warning) == (Phase.HIBERNATING, None)
    assert pool.now(ann).phase is Phase.PENDING
    await pool.come_up(agent)
    assert pool.now(bob).phase is Phase.HIBERNATED
    assert pool.now(ann).phase is Phase.PENDING
    await pool.wind_down(agent)
    assert pool.now(ann).phase is Phase.STARTING


async def test_claim_that_was_at_work_waits_for_devices_again(teams):
    """By itself, with its results, in its turn."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    ann = await pool.claim(2)
    await pool.pass_s(31)
    await pool.come_up(agent)
    await pool.wind_down(agent)
    assert (pool.now(bob).phase, pool.now(ann).phase) == (Phase.RESUMING, Phase.STARTING)
    await pool.release(ann)
    await pool.wind_down(agent)
    assert pool.now(bob).phase is Phase.STARTING


async def test_claim_whose_results_cannot_be_kept_ends_as_reclaimed(teams):
    """Others have a better right; its user was told which result it is."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    ann = await pool.claim(2)
    agent.unkept[bob.id] = (Unkept(key="counter-1", reason=UnkeptReason.ACTOR),)
    await pool.pass_s(31)
    await pool.come_up(agent)
    assert (pool.now(bob).phase, pool.now(bob).end) == (Phase.ENDING, EndKind.RECLAIMED)
    assert "counter-1 is an actor" in pool.now(bob).reason
    await pool.wind_down(agent)
    assert pool.now(ann).phase is Phase.STARTING


async def test_elastic_claim_shrinks_and_hands_its_results_over(teams):
    """Its worker retires, the others go on."""
    pool, agent = teams
    bob = await pool.claim(1, 2, user="bob")
    await pool.come_up(agent)
    ann = await pool.claim(1)
    await pool.pass_s(31)
    phases = sorted(lease.phase for lease in pool.leases(bob))
    assert phases == [LeasePhase.RETIRING, LeasePhase.RUNNING]
    [claim] = pool.desired(agent).claims
    assert [worker.retire for worker in claim.workers].count(True) == 1
    await pool.pass_s(31)
    await pool.wind_down(agent)
    assert (pool.now(bob).phase, pool.now(bob).warning) == (Phase.RUNNING, None)
    assert pool.now(ann).phase is Phase.STARTING


async def test_clock_set_back_prolongs_no_grace(teams):
    """Nobody waits an hour longer because a clock was wrong."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    await pool.claim(2)
    pool.time.wall -= timedelta(hours=1)
    await pool.pass_s(31)
    assert pool.now(bob).phase is Phase.HIBERNATING


async def test_notice_is_void_when_nobody_waits_any_more(teams):
    """The claim keeps what it has."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    ann = await pool.claim(2)
    await pool.release(ann)
    assert pool.now(bob).warning is None
    await pool.pass_s(31)
    assert [lease.phase for lease in pool.leases(bob)] == [LeasePhase.RUNNING] * 2


async def test_claim_that_has_not_started_yet_just_waits_again(teams):
    """Nothing is lost by that, and it is no failed start."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.make_so(agent)
    ann = await pool.claim(2)
    assert (pool.now(bob).phase, pool.now(bob).failed_starts) == (Phase.PENDING, 0)
    await pool.wind_down(agent)
    assert pool.now(ann).phase is Phase.STARTING


async def test_devices_freed_for_a_claim_go_to_nobody_else(teams):
    """Whoever comes in the meantime waits."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    ann = await pool.claim(2)
    await pool.release(bob)
    eve = await pool.claim(1, user="eve")
    await pool.wind_down(agent)
    assert (pool.now(ann).phase, pool.now(eve).phase) == (Phase.STARTING, Phase.PENDING)


async def test_notice_and_promise_survive_a_restart(teams):
    """What was told happens, and for whom it was told."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    ann = await pool.claim(2)
    books = pool.service.books
    pool.store.everything = replace(
        pool.store.everything,
        claims=tuple(books.claims.values()),
        leases=tuple(books.leases.values()),
        hosts=tuple(books.hosts.values()),
        policies=tuple(pool.store.commits[1].new_policies),
    )
    await pool.service.close()
    pool.service = Service(pool.store, Settings(), pool.time.clock())
    await pool.service.start()
    await pool.join(agent)
    await pool.pass_s(31)
    assert pool.now(bob).phase is Phase.HIBERNATING
    await pool.come_up(agent)
    await pool.wind_down(agent)
    assert pool.now(ann).phase is Phase.STARTING


async def test_keeping_a_claim_does_not_keep_it_from_others(teams):
    """A keep speaks against idleness alone."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    await pool.claim(2)
    keep = KeepClaim(caller=pool.user("bob"), claim_id=bob.id, duration=timedelta(hours=1))
    await pool.service.execute(partial(keep_claim, command=keep))
    assert pool.now(bob).warning is not None


async def test_without_a_policy_nobody_loses_anything(pool):
    """Whoever comes later waits, as ever."""
    agent = await pool.joined("a", 2)
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    await pool.claim(1)
    await pool.pass_s(3600)
    assert len(pool.leases(bob)) == 2
    assert pool.now(bob).warning is None


async def test_worker_on_another_host_is_named_to_its_scheduler(pool):
    """Its own host cannot tell it to hand its results over."""
    holder, agent = await pool.joined("h", 0, durable=True), await pool.joined("a", 2)
    command = ApplyPolicy(source=TEAMS, by=UserName("root"))
    await pool.service.execute(partial(apply_policy, command=command))
    bob = await pool.claim(1, 2, user="bob")
    await pool.come_up(holder, agent)
    await pool.claim(1)
    await pool.pass_s(31)
    [leaving] = [x.id for x in pool.leases(bob) if x.phase is LeasePhase.RETIRING]
    wanted = {claim.claim_id: claim for claim in pool.desired(holder).claims}
    assert wanted[bob.id].scheduler.retire == (leaving,)


async def test_warning_goes_with_the_lease_it_was_of(teams):
    """Whether its worker dies or its device is given back: nothing more will be taken."""
    pool, agent = teams
    bob = await pool.claim(1, 2, user="bob")
    await pool.come_up(agent)
    await pool.claim(1)
    [noticed] = [lease.id for lease in pool.leases(bob) if lease.notice is not None]
    assert pool.now(bob).warning is not None
    agent.workers[noticed] = ProcessPhase.FAILED
    await pool.say(agent)
    assert (pool.now(bob).phase, pool.now(bob).warning) == (Phase.RUNNING, None)


async def test_room_below_a_limit_is_given_before_it_is_used(pool):
    """Devices are free, yet their queue never holds more than it may, and nobody keeps too much."""
    agent = await pool.joined("a", 4)
    command = ApplyPolicy(source=LIMITED, by=UserName("root"))
    await pool.service.execute(partial(apply_policy, command=command))
    bob = await pool.claim(2, user="bob")
    unwell = DeviceState(health=Health.QUARANTINED)
    agent.states = {lease.device: unwell for lease in pool.leases(bob)}
    await pool.come_up(agent)
    ann = await pool.claim(2)
    await pool.claim(9, user="cleo")  # one more pass
    assert pool.now(bob).warning is not None
    assert pool.leases(ann) == []
    await pool.pass_s(31)
    assert pool.now(bob).phase is Phase.HIBERNATING
    assert pool.now(ann).phase is Phase.STARTING


async def test_claim_that_wakes_again_is_warned_of_what_is_still_due(teams):
    """Scaled to no worker and back meanwhile: others' right is no less, and its user knows."""
    pool, agent = teams
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    ann = await pool.claim(2)
    before = pool.now(bob).warning
    await pool.scale(bob, 0, 0)
    assert pool.now(bob).phase is Phase.HIBERNATING
    await pool.scale(bob, 2, 2)
    warning = pool.now(bob).warning
    assert (pool.now(bob).phase, warning.rule) == (Phase.RUNNING, before.rule)
    assert warning.deadline == before.deadline
    await pool.come_up(agent)
    await pool.pass_s(31)
    await pool.come_up(agent)
    await pool.wind_down(agent)
    assert pool.now(ann).phase is Phase.STARTING
