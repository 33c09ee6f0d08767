"""Least attained service in the manager: who has had most gives way, and loses nothing by it."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.reserving import ReserveDevices, reserve
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.pool.worker_devices import WorkerDevices
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.protocol.keeping import Unkept, UnkeptReason

HOUR = 3600.0
MINUTE = 60.0
POLICY = """
[queues.class]
users = ["dora"]
[queues.others]
users = ["*"]
[scheduling]
surplus_order = "least_attained_service"
reclaim = {reclaim}
moves = "{moves}"
grace = "30s"
"""


async def ruled(pool, *, reclaim: str = "true", moves: str = "proposed") -> None:
    source = POLICY.format(reclaim=reclaim, moves=moves)
    command = ApplyPolicy(source=source, by=UserName("root"))
    await pool.service.execute(partial(apply_policy, command=command))


async def moved_on(pool, seconds: float, *agents) -> None:
    """Let time pass to the next thing that is due, again and again, with agents that obey."""
    until_s = pool.time.monotonic_s + seconds
    while pool.time.monotonic_s < until_s:
        due_s = pool.service.deadlines.earliest() or until_s
        await pool.pass_s(max(1.0, min(due_s, until_s) - pool.time.monotonic_s))
        await pool.come_up(*agents)
        await pool.wind_down(*agents)


@pytest.fixture
async def long_run(pool):
    """Two devices, both bob's for two hours: he has passed the first level."""
    agent = await pool.joined("a", 2)
    await ruled(pool)
    bob = await pool.claim(2, user="bob")
    agent.results[bob.id] = 3
    await pool.come_up(agent)
    await pool.pass_s(2 * HOUR)
    return pool, agent, bob


async def test_who_has_had_most_hibernates_for_who_has_had_nothing(long_run):
    """With notice, its results kept; it waits for its turn again by itself."""
    pool, agent, bob = long_run
    ann = await pool.claim(2)
    assert pool.now(bob).warning.reason == (
        "2 workers needed by a claim that has held devices for less time."
    )
    await moved_on(pool, 2 * MINUTE, agent)
    assert (pool.now(ann).phase, pool.now(bob).phase) == (Phase.RUNNING, Phase.RESUMING)
    assert pool.now(bob).hibernation.results == 3
    await pool.release(ann)
    await moved_on(pool, MINUTE, agent)
    await pool.come_up(agent)
    assert (pool.now(bob).phase, pool.now(bob).hibernation) == (Phase.RUNNING, None)


async def test_what_it_has_had_counts_after_it_has_given_it_back(long_run):
    """Else it would stand before whom it has just made room for, and the two take turns."""
    pool, agent, bob = long_run
    ann = await pool.claim(2)
    await moved_on(pool, 2 * MINUTE, agent)
    [seen] = [each for each in pool.service.look().claims if each.id == bob.id]
    assert seen.attained_s == pytest.approx(2 * 2 * HOUR, abs=2 * MINUTE)
    await moved_on(pool, 3 * HOUR, agent)
    assert (pool.now(ann).phase, pool.now(ann).warning) == (Phase.RUNNING, None)
    assert pool.now(bob).phase is Phase.RESUMING


async def test_who_waits_gets_its_turn_once_the_other_has_had_more(long_run):
    """A level above: the devices come back, with notice and results."""
    pool, agent, bob = long_run
    ann = await pool.claim(2)
    await moved_on(pool, 6 * HOUR, agent)
    assert (pool.now(bob).phase, pool.now(ann).phase) == (Phase.RUNNING, Phase.RESUMING)


async def test_claim_whose_results_cannot_be_kept_keeps_its_place(long_run):
    """It has done nothing wrong but to run long; who waits goes on waiting."""
    pool, agent, bob = long_run
    agent.unkept[bob.id] = (Unkept(key="counter-1", reason=UnkeptReason.ACTOR),)
    ann = await pool.claim(2)
    await moved_on(pool, 10 * MINUTE, agent)
    assert (pool.now(bob).phase, pool.now(bob).warning) == (Phase.RUNNING, None)
    assert (pool.now(ann).phase, pool.service.books.claims[ann.id].promised) == (Phase.PENDING, ())


async def test_policy_that_takes_nothing_back_displaces_nobody(pool):
    """It orders those who wait, and that is all."""
    agent = await pool.joined("a", 2)
    await ruled(pool, reclaim="false")
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    await pool.pass_s(2 * HOUR)
    ann = await pool.claim(2)
    await moved_on(pool, 10 * MINUTE, agent)
    assert (pool.now(bob).warning, pool.now(ann).phase) == (None, Phase.PENDING)


async def test_attained_service_survives_a_restart(long_run):
    """It is part of the claim, not of the manager."""
    pool, agent, bob = long_run
    await pool.claim(2)
    await moved_on(pool, 2 * MINUTE, agent)
    before = pool.service.books.claims[bob.id].served_s
    books, commits = pool.service.books, pool.store.commits
    pool.store.everything = replace(
        pool.store.everything,
        claims=tuple(books.claims.values()),
        leases=tuple(books.leases.values()),
        hosts=tuple(books.hosts.values()),
        policies=tuple(new for each in commits for new in each.new_policies)[::-1],
    )
    await pool.service.close()
    pool.service = Service(pool.store, Settings(), pool.time.clock())
    await pool.service.start()
    await pool.join(agent)
    [seen] = [each for each in pool.service.look().claims if each.id == bob.id]
    assert seen.attained_s == before > 0


async def test_devices_are_empty_when_a_booked_window_opens(pool):
    """Whoever holds them is told a quarter of an hour before; nobody else gets them meanwhile."""
    agent = await pool.joined("a", 2)
    await ruled(pool)
    bob = await pool.claim(2, user="bob")
    agent.results[bob.id] = 3
    await pool.come_up(agent)
    await booked(pool, 2, in_s=HOUR)
    await moved_on(pool, 46 * MINUTE, agent)
    assert pool.now(bob).warning.rule == "reservation"
    await moved_on(pool, 14 * MINUTE, agent)
    assert (pool.now(bob).phase, pool.leases(bob)) == (Phase.RESUMING, [])
    eve = await pool.claim(user="eve")
    assert pool.now(eve).phase is Phase.PENDING
    assert "what is free is kept for class" in pool.service.waits.of(eve.id).reason
    assert (await pool.claim(2, user="dora")).phase is Phase.STARTING
    await moved_on(pool, 2 * HOUR, agent)


async def test_booked_devices_are_everybodys_again_when_the_window_closes(pool):
    """Whoever waited for them starts."""
    agent = await pool.joined("a", 2)
    await ruled(pool)
    await booked(pool, 2, in_s=5 * MINUTE)
    await moved_on(pool, 6 * MINUTE, agent)
    eve = await pool.claim(user="eve")
    assert pool.now(eve).phase is Phase.PENDING
    await moved_on(pool, 2 * HOUR, agent)
    assert pool.now(eve).phase is Phase.RUNNING


async def booked(pool, devices: int, in_s: float) -> None:
    """So many for the class, for two hours."""
    begins = pool.time.wall + timedelta(seconds=in_s)
    command = ReserveDevices(
        caller=pool.user("root", Role.ADMIN),
        queue="class",
        devices=devices,
        begins=begins,
        ends=begins + timedelta(hours=2),
    )
    await pool.service.execute(partial(reserve, command=command))


async def test_gang_that_fits_in_total_has_others_moved(pool):
    """Where nobody has to give way, for all have had as little."""
    agents = await pool.joined("a", 2), await pool.joined("b", 2)
    await ruled(pool, moves="done")
    held = [await pool.claim(user=user, near=near) for user, near in (("bob", "a"), ("cleo", "b"))]
    await pool.come_up(*agents)
    ann = await pool.claim(devices=WorkerDevices(count=2))
    await moved_on(pool, 2 * MINUTE, *agents)
    assert pool.now(ann).phase is Phase.RUNNING
    assert [pool.now(claim).phase for claim in held] == [Phase.RUNNING] * 2
