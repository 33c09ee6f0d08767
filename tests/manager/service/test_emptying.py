"""Devices reserved for a class: told in time, emptied in time, kept until the window closes."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from manager_harness.remembering_store import NOTHING

from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.hub import Hub
from jupyter_gpupool.manager.service.loading import load
from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.reserving import (
    CancelReservation,
    ReserveDevices,
    cancel,
    reserve,
)
from jupyter_gpupool.manager.service.using import KeepClaim, keep_claim
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

MINUTE = 60.0
POLICY = """
[queues.class]
users = ["ann"]
[queues.others]
users = ["*"]
[scheduling]
reclaim = {reclaim}
grace = "30s"
"""


async def apply(pool, *, reclaim: str = "true") -> None:
    source = POLICY.format(reclaim=reclaim)
    command = ApplyPolicy(source=source, by=UserName("root"))
    await pool.service.execute(partial(apply_policy, command=command))


async def booked(pool, devices: int = 2, in_s: float = 60 * MINUTE) -> str:
    """So many for the class, for two hours."""
    begins = pool.time.wall + timedelta(seconds=in_s)
    command = ReserveDevices(
        caller=pool.user("root", Role.ADMIN),
        queue="class",
        devices=devices,
        begins=begins,
        ends=begins + timedelta(hours=2),
    )
    return await pool.service.execute(partial(reserve, command=command))


async def moved_on(pool, seconds: float, *agents) -> None:
    """Let time pass to the next thing that is due, again and again, with agents that obey."""
    until_s = pool.time.monotonic_s + seconds
    while pool.time.monotonic_s < until_s:
        due_s = pool.service.deadlines.earliest() or until_s
        await pool.pass_s(max(1.0, min(due_s, until_s) - pool.time.monotonic_s))
        await pool.come_up(*agents)
        await pool.wind_down(*agents)


@pytest.fixture
async def busy(pool):
    """Four devices, all of them bob's: one claim that may shrink to two."""
    agent = await pool.joined("a", 4)
    await apply(pool)
    bob = await pool.claim(2, 4, user="bob")
    await pool.come_up(agent)
    return pool, agent, bob


async def test_starting_claim_gives_back_only_what_is_asked(pool):
    """It may go on starting with what it needs at least."""
    await pool.joined("a", 4)
    await apply(pool)
    bob = await pool.claim(2, 4, user="bob")
    await booked(pool, in_s=20.0)
    await pool.pass_s(31.0)
    assert pool.service.books.claims[bob.id].claim.phase is Phase.STARTING
    assert sum(lease.counts for lease in pool.leases(bob)) == 2


async def test_holder_is_warned_a_quarter_of_an_hour_before(busy):
    """Not sooner, and once; the deadline is a minute before the window."""
    pool, _, bob = busy
    await booked(pool)
    await pool.pass_s(44 * MINUTE)
    assert pool.now(bob).warning is None
    await pool.pass_s(MINUTE)
    warning = pool.now(bob).warning
    assert (warning.rule, warning.reason) == (
        "reservation",
        "Its devices are reserved for class.",
    )
    assert warning.deadline == pool.time.wall + timedelta(minutes=14)
    await pool.pass_s(MINUTE)
    assert pool.now(bob).warning == warning


async def test_devices_are_empty_when_the_window_opens(busy):
    """The claim shrinks before, goes on with its least, and the class starts at once."""
    pool, agent, bob = busy
    await booked(pool)
    await moved_on(pool, 60 * MINUTE, agent)
    assert (pool.now(bob).phase, len(pool.leases(bob))) == (Phase.RUNNING, 2)
    assert pool.now(bob).warning is None
    dora = await pool.claim(1, user="dora")
    assert pool.now(dora).phase is Phase.PENDING
    told = pool.service.waits.of(dora.id).reason
    assert "what is free is kept for class until 2026-11-30 15:00 UTC" in told
    assert (await pool.claim(2)).phase is Phase.STARTING


async def test_devices_are_everybodys_again_when_the_window_closes(busy):
    """Whoever waited for them starts."""
    pool, agent, _ = busy
    await booked(pool)
    await moved_on(pool, 60 * MINUTE, agent)
    dora = await pool.claim(1, user="dora")
    await moved_on(pool, 119 * MINUTE, agent)
    assert pool.now(dora).phase is Phase.PENDING
    await moved_on(pool, 2 * MINUTE, agent)
    assert pool.now(dora).phase is Phase.RUNNING


async def test_claim_that_cannot_shrink_hibernates_with_notice(pool):
    """Its results are kept, and it waits for other devices."""
    agent = await pool.joined("a", 2)
    await apply(pool)
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    await booked(pool)
    await moved_on(pool, 60 * MINUTE, agent)
    assert (pool.now(bob).phase, pool.leases(bob)) == (Phase.RESUMING, [])


async def test_nobody_else_goes_while_devices_are_being_freed(pool):
    """What one claim has given back and is not proven free yet counts as coming."""
    agent = await pool.joined("a", 4)
    await apply(pool)
    old = await pool.claim(2, user="bob")
    pool.time.pass_s(1.0)
    young = await pool.claim(2, user="dora")
    await pool.come_up(agent)
    await booked(pool)
    await pool.pass_s(45 * MINUTE)
    await pool.pass_s(14 * MINUTE)
    await pool.service.execute(_look_again)
    warned = [claim.id for claim in (old, young) if pool.now(claim).warning is not None]
    assert ([pool.now(old).phase, pool.now(young).phase], warned) == (
        [Phase.RUNNING, Phase.HIBERNATING],
        [],
    )


def _look_again(unit) -> None:
    unit.replan = True


async def test_cancelled_reservation_takes_its_warning_back(busy):
    """At once, and nothing is taken."""
    pool, agent, bob = busy
    made = await booked(pool)
    await pool.pass_s(50 * MINUTE)
    assert pool.now(bob).warning is not None
    command = CancelReservation(caller=pool.user("root", Role.ADMIN), reservation_id=made)
    await pool.service.execute(partial(cancel, command=command))
    assert pool.now(bob).warning is None
    await moved_on(pool, 10 * MINUTE, agent)
    assert len(pool.leases(bob)) == 4


async def test_keeping_a_claim_does_not_keep_reserved_devices(busy):
    """It is no idle rule that takes them."""
    pool, _, bob = busy
    await booked(pool)
    await pool.pass_s(50 * MINUTE)
    keep = KeepClaim(
        caller=pool.user("bob"), claim_id=bob.id, duration=timedelta(hours=1), reason=""
    )
    await pool.service.execute(partial(keep_claim, command=keep))
    assert pool.now(bob).warning.rule == "reservation"


async def test_pool_that_takes_nothing_back_keeps_what_becomes_free(pool):
    """Its policy says so: whoever holds, holds; but nobody new gets what is booked."""
    agent = await pool.joined("a", 2)
    await apply(pool, reclaim="false")
    bob = await pool.claim(1, user="bob")
    await pool.come_up(agent)
    await booked(pool)
    await moved_on(pool, 50 * MINUTE, agent)
    assert pool.now(bob).warning is None
    assert (await pool.claim(1, user="dora")).phase is Phase.PENDING


async def test_warning_of_an_earlier_manager_holds_as_it_was_given(busy):
    """What it announced is not in the database; the next pass says it again."""
    pool, _, bob = busy
    made = await booked(pool)
    await pool.pass_s(50 * MINUTE)
    books, anew, warning = pool.service.books, Books(), pool.now(bob).warning
    everything = replace(NOTHING, claims=(books.claims[bob.id],))
    load(everything, anew, Hub(), pool.time.wall.timestamp())
    assert [key for key, _ in anew.announced.items()] == [(bob.id, "")]
    books.announced = anew.announced
    await pool.service.execute(_look_again)
    [(key, said)] = books.announced.items()
    assert (key, said.deadline) == ((bob.id, made), warning.deadline)
    assert pool.now(bob).warning == warning


async def test_taken_devices_are_noticed_for_whoever_waits_in_the_queue(pool):
    """So that nothing more is taken for them, and their start is foreseen."""
    agent = await pool.joined("a", 4)
    await apply(pool)
    await pool.claim(2)
    bob = await pool.claim(2, user="bob")
    await pool.come_up(agent)
    await booked(pool, devices=4)
    waiting = await pool.claim(2)
    assert waiting.phase is Phase.PENDING
    await pool.pass_s(45 * MINUTE)
    await pool.pass_s(14 * MINUTE)
    assert pool.now(bob).phase is Phase.HIBERNATING
    assert {lease.notice.claimants for lease in pool.leases(bob)} == {(waiting.id,)}
