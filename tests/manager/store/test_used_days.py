"""Claims' days: exact over idleness, restarts and forgetting."""

from datetime import timedelta

import pytest
from manager_harness.idle_player import apply

from jupyter_gpupool.manager.store.database import open_engine
from jupyter_gpupool.manager.store.used_days import keep_summed, next_summed
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.scheduling.used_time import DeviceTime

MINUTE, HOUR, DAY = 60, 3600, timedelta(days=1)
_RELEASE = """
[queues.default]
users = ["*"]

[[idle.rules]]
name = "all"
warn = "15min"
after = "20min"
action = "release"
"""


async def used(idler, days_ago=10, owner=None):
    """All that was used, added up."""
    now = idler.pool.time.wall
    since = int((now - days_ago * DAY).timestamp() // 86_400)
    found = await idler.pool.store.used(since, now, owner=owner)
    return sum((part for day in found for part in day.quarters.values()), DeviceTime())


async def release(idler):
    """Its user gives it back, and its host says that all has gone."""
    await idler.pool.release(idler.claim)
    await idler.pool.wind_down(idler.agent)


async def test_busy_and_idle_are_what_was_seen(idler):
    """An hour of work and half an hour of rest on two devices."""
    await idler.rest(HOUR, Signal.TASKS)
    await idler.rest(30 * MINUTE)
    await release(idler)
    found = await used(idler)
    assert (found.busy_s, found.idle_s) == (pytest.approx(2 * HOUR), pytest.approx(HOUR))
    assert found.held_s == pytest.approx(3 * HOUR, abs=60)
    assert found.won_s == 0


async def test_silence_of_a_host_is_unknown(idler):
    """And never idle."""
    await idler.rest(10 * MINUTE, Signal.TASKS)
    idler.pool.time.wall += timedelta(hours=1)
    await release(idler)
    found = await used(idler)
    assert found.idle_s == 0
    assert found.unknown_s == pytest.approx(2 * HOUR, abs=60)


async def test_days_that_are_over_outlive_their_claims(idler):
    """Summed up once, whoever sums up again; then claim, leases and samples may be forgotten."""
    await idler.rest(HOUR, Signal.TASKS)
    await release(idler)
    before = await used(idler)
    idler.pool.time.wall += 2 * DAY
    now = idler.pool.time.wall
    await idler.pool.store.sum_up(now)
    await idler.pool.store.sum_up(now)
    await idler.pool.store.prune(now, now, now)
    assert await idler.pool.store.claim(idler.claim_id) is None
    assert await used(idler) == before


async def test_claim_that_goes_on_is_split_between_what_is_summed_up_and_what_is_not(idler):
    """Nothing is counted twice, nothing is left out."""
    for _ in range(30):
        await idler.rest(HOUR, Signal.TASKS)
    before = await used(idler)
    await idler.pool.store.sum_up(idler.pool.time.wall)
    after = await used(idler)
    assert after.held_s == pytest.approx(before.held_s)
    assert after.busy_s == pytest.approx(before.busy_s)
    assert before.held_s == pytest.approx(60 * HOUR, abs=60)


async def test_what_is_taken_for_idleness_is_won_back(idler):
    """For eight hours at most, if its user neither comes back nor had said when it ends."""
    await apply(idler.pool, _RELEASE)
    await idler.rest(21 * MINUTE)
    await idler.pool.wind_down(idler.agent)
    assert idler.claim.phase is Phase.ENDED
    idler.pool.time.wall += timedelta(hours=2)
    two_hours = (await used(idler)).won_s
    idler.pool.time.wall += timedelta(hours=20)
    assert two_hours == pytest.approx(4 * HOUR, abs=600)
    assert (await used(idler)).won_s == pytest.approx(16 * HOUR, abs=600)


async def test_days_are_summed_up_one_by_one_beside_the_writer(idler, tmp_path):
    """What is read and worked out holds no lock; writing the same day twice changes nothing."""
    for _ in range(60):
        await idler.rest(HOUR, Signal.TASKS)
    before = await used(idler)
    engine = open_engine(f"sqlite:///{tmp_path / 'manager.sqlite'}")
    with engine.connect() as reader:
        days = [next_summed(reader, idler.pool.time.wall) for _ in range(2)]
        await idler.pool.store.prove_writable()
    assert days[0] == days[1]
    assert days[0].rows
    assert {row["day"] for row in days[0].rows} == {days[0].until - 1}
    for day in days:
        with engine.begin() as writer:
            keep_summed(writer, day)
    assert await used(idler) == before
    await idler.pool.store.sum_up(idler.pool.time.wall)
    assert await used(idler) == before
    engine.dispose()


async def test_one_owners_usage_is_the_same_when_theirs_alone_is_read(idler):
    """And a stranger's is nothing, summed up or not."""
    for _ in range(30):
        await idler.rest(HOUR, Signal.TASKS)
    before = await used(idler)
    for _ in range(2):
        assert await used(idler, owner=idler.claim.owner) == before
        assert await used(idler, owner="mallory") == DeviceTime()
        await idler.pool.store.sum_up(idler.pool.time.wall)
