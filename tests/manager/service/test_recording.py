"""What is kept of claims for dry runs: little, whole, and the cautious way round."""

from datetime import timedelta

from jupyter_gpupool.pool.signals import Signal

MINUTE, HOUR = 60, 3600


async def recorded(idler):
    """All that is written down."""
    idler.step_s = 10.0
    await idler.pool.release(idler.claim)
    found = await idler.pool.store.recorded(idler.pool.time.wall - timedelta(days=14))
    assert all(each.claim_id == idler.claim_id for each in found)
    return [each.recorded.sample for each in found]


async def test_hours_of_rest_are_a_record_each(idler):
    """Though no rule asks for them: a policy may be tried before there is any."""
    await idler.rest(2 * HOUR + 30 * MINUTE)
    lengths = [sample.end_ms - sample.begin_ms for sample in await recorded(idler)]
    assert lengths == [3_600_000, 3_600_000, 1_800_000]


async def test_work_now_and_then_is_kept_in_pieces(idler):
    """Of five minutes, in which activity counts for all; nothing is left out."""
    for _ in range(30):
        await idler.rest(10, Signal.TASKS)
        await idler.rest(50, gpu_peak=100, gpu_mean=10)
    samples = await recorded(idler)
    assert len(samples) == 6
    assert all(Signal.TASKS in sample.active for sample in samples)
    assert all(sample.gpu_peak == 100 for sample in samples)
    assert sum(sample.end_ms - sample.begin_ms for sample in samples) == 30 * MINUTE * 1000


async def test_what_is_too_old_is_forgotten(idler):
    """After as long as it is to be kept."""
    await idler.rest(10 * MINUTE)
    assert await recorded(idler)
    now = idler.pool.time.wall + timedelta(days=15)
    long_ago = now - timedelta(days=300)
    await idler.pool.store.prune(long_ago, long_ago, now - timedelta(days=14))
    assert await idler.pool.store.recorded(long_ago) == []


async def test_what_is_open_is_written_at_a_clean_end(idler):
    """A manager that ends loses nothing of it."""
    await idler.rest(10 * MINUTE)
    before = await idler.pool.store.recorded(idler.pool.time.wall - timedelta(days=1))
    await idler.pool.service.close()
    after = await idler.pool.store.recorded(idler.pool.time.wall - timedelta(days=1))
    assert (len(before), len(after)) == (0, 1)
