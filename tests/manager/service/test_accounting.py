"""What users have used: charged by the lease, exact, whenever it is looked at."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpupool.manager.service.accounting import charged
from jupyter_gpupool.manager.service.forgetting import forget_old
from jupyter_gpupool.manager.service.records import UsageRecord
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.scheduling.usage import usage_at

HOUR_S = 3600.0


def _used(pool, leaf: str) -> float:
    record = pool.service.books.usage[leaf]
    return usage_at(record.spent, pool.time.wall.timestamp(), half_life_s=inf)


async def test_device_time_counts_from_grant_to_return(pool):
    """Two devices for an hour are two hours, and nothing after they are free."""
    agent = await pool.joined("a", 2)
    claim = await pool.claim(2)
    await pool.come_up(agent)
    pool.time.pass_s(HOUR_S)
    assert _used(pool, "default/ann") == pytest.approx(2 * HOUR_S)
    await pool.release(claim)
    await pool.wind_down(agent)
    pool.time.pass_s(HOUR_S)
    assert _used(pool, "default/ann") == pytest.approx(2 * HOUR_S)
    assert pool.service.books.usage["default/ann"].decayed.held == 0


async def test_grant_and_charge_are_one_transaction(pool):
    """Neither is ever written without the other."""
    await pool.joined("a", 1)
    await pool.claim()
    (changes,) = [changes for changes in pool.store.commits if changes.new_leases]
    assert [record.decayed.held for record in changes.new_usage] == [1000]


async def test_manager_that_was_away_has_lost_no_usage(pool):
    """What is held meanwhile is charged all the same."""
    await pool.joined("a", 1)
    await pool.claim()
    books, kept = pool.service.books, pool.store.everything
    pool.store.everything = replace(
        kept,
        claims=tuple(books.claims.values()),
        leases=tuple(books.leases.values()),
        usage=tuple(books.usage.values()),
    )
    pool.time.pass_s(HOUR_S)
    pool.service = Service(pool.store, Settings(), pool.time.clock())
    await pool.service.start()
    assert _used(pool, "default/ann") == pytest.approx(HOUR_S)
    await pool.service.close()


async def test_leases_that_nobody_charged_are_charged_from_the_start_on(pool):
    """As after the first start of a version that keeps accounts."""
    await pool.joined("a", 1)
    await pool.claim()
    books, kept = pool.service.books, pool.store.everything
    claims, leases = tuple(books.claims.values()), tuple(books.leases.values())
    pool.store.everything = replace(kept, claims=claims, leases=leases)
    pool.service = Service(pool.store, Settings(), pool.time.clock())
    await pool.service.start()
    pool.time.pass_s(HOUR_S)
    assert _used(pool, "default/ann") == pytest.approx(HOUR_S)
    await pool.service.close()


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.integers(0, 8)), max_size=20),
    st.floats(1, 1e6),
)
def test_budget_counts_the_running_period_alone(steps, period_s):
    """However the changes lie to the periods' beginnings."""
    record, now_s, expected, held = UsageRecord(leaf="a/b"), 0.0, 0.0, 0
    for passed_s, devices in steps:
        begins_s = (now_s + passed_s) - (now_s + passed_s) % period_s
        expected = held * min(passed_s, now_s + passed_s - begins_s) + (
            expected if begins_s <= now_s else 0.0
        )
        now_s += passed_s
        record = charged(
            record, (devices - held) * 1000, now_s, half_life_s=HOUR_S, period_s=period_s
        )
        held = devices
    assert usage_at(record.spent, now_s, half_life_s=inf) == pytest.approx(expected, abs=1e-3)


async def test_usage_that_changes_nobodys_share_is_forgotten(pool):
    """Long after its user was here last, and no sooner."""
    agent = await pool.joined("a", 1)
    claim = await pool.claim(1)
    await pool.come_up(agent)
    await pool.release(claim)
    await pool.wind_down(agent)
    await pool.service.execute(forget_old)
    assert set(pool.service.books.usage) == {"default/ann"}
    pool.time.pass_s(31 * 24 * HOUR_S)
    await pool.service.execute(forget_old)
    assert not pool.service.books.usage
    assert [changes.gone_usage for changes in pool.store.commits][-1] == ("default/ann",)
