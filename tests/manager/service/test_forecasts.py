"""Starts are foreseen when somebody asks, from what is said and what was learned, else not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jupyter_gpupool.manager.service.forecasts import promised_start
from jupyter_gpupool.scheduling.expected import Source
from jupyter_gpupool.scheduling.shape import ONE_DEVICE, HeldWorker

MINUTES = timedelta(minutes=1)


async def foreseen(pool, claim):
    """When it is thought to start, asked now."""
    await pool.service.forecasts.refresh([claim.id])
    return pool.service.forecasts.of(claim.id)


async def a_past(pool, agent, count: int, took_s: float) -> None:
    """So many claims of ann's, each given back after a time."""
    for _ in range(count):
        claim = await pool.claim(1)
        await pool.come_up(agent)
        pool.time.pass_s(took_s)
        await pool.release(claim)
        await pool.wind_down(agent)


async def test_start_follows_what_the_holder_says(pool):
    """Twenty minutes at the median, twice that when late."""
    agent = await pool.joined(devices=1)
    await pool.claim(1, expected=20 * MINUTES)
    await pool.come_up(agent)
    start = await foreseen(pool, await pool.claim(1))
    assert (start.at, start.by) == (pool.time.wall + 20 * MINUTES, pool.time.wall + 40 * MINUTES)
    assert not start.is_learned


async def test_start_is_learned_from_past_claims(pool):
    """Five claims of five minutes say how long the sixth one takes."""
    agent = await pool.joined(devices=1)
    await a_past(pool, agent, 5, 300.0)
    await pool.claim(1)
    await pool.come_up(agent)
    start = await foreseen(pool, await pool.claim(1))
    assert (start.at, start.is_learned) == (pool.time.wall + 5 * MINUTES, True)


async def test_nothing_is_made_of_nothing(pool):
    """Where nobody says and nothing was learned, there is no estimate."""
    agent = await pool.joined(devices=1)
    await pool.claim(1)
    await pool.come_up(agent)
    assert await foreseen(pool, await pool.claim(1)) is None


async def test_forecast_is_kept_for_seconds(pool):
    """Whoever asks again at once is not foreseen anew; a claim not known then is."""
    agent = await pool.joined(devices=1)
    await pool.claim(1, expected=20 * MINUTES)
    await pool.come_up(agent)
    first = await pool.claim(1, expected=10 * MINUTES)
    before = await foreseen(pool, first)
    pool.time.pass_s(1.0)
    assert await foreseen(pool, first) is before
    second = await pool.claim(1)
    assert (await foreseen(pool, second)).at == before.at + 10 * MINUTES


async def test_learning_outlives_a_restart(site):
    """What ended before comes from the database, once."""
    agent = await site.host(devices=1)
    async with await site.client() as client:
        for _ in range(5):
            made = await client.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
            await site.come_up(agent)
            await client.post(f"/api/v1/claims/{made.json()['id']}/release", json={})
            agent.make_so(site.parts.service.outboxes.of(agent.host_id).desired)
            agent.all_stopped()
            await site.say(agent)
    learning = type(site.parts.service.learning)()
    learning.recall(await site.parts.service.store.ended_claims(None, 10), site.parts.service.books)
    [record, *_] = site.parts.service.books.claims.values()
    told = learning.expect_of(record, site.parts.service.books, ONE_DEVICE)
    assert (told.source, told.learned_from) == (Source.USER, 5)


@pytest.mark.parametrize("workers", [(), (HeldWorker("a", ("SIM-a-0",)),)])
async def test_promised_claim_starts_when_the_grace_is_over(pool, workers):
    """Its devices are being taken; whoever is promised nothing is not told so."""
    await pool.joined(devices=1)
    books, claim = pool.service.books, await pool.claim(1)
    books.claims[claim.id] = replace(books.claims[claim.id], promised=workers)
    start = promised_start(books, claim.id, pool.time.wall)
    assert (start and start.at) == (pool.time.wall if workers else None)
