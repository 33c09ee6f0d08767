"""Cores and memory of hosts are counted for the claims that ask for them, and for no others."""

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.request import WorkerOptions


async def test_cores_of_a_host_are_not_promised_twice(pool):
    """Its third device stays free for whoever needs fewer."""
    await pool.joined("a", 3)
    phases = [(await pool.claim(1, cpu=4000)).phase for _ in range(3)]
    assert phases == [Phase.STARTING, Phase.STARTING, Phase.PENDING]
    assert (await pool.claim(1)).phase is Phase.STARTING


async def test_memory_of_a_host_is_not_promised_twice(pool):
    """A worker's memory limit is what it is counted for."""
    await pool.joined("a", 2)
    options = WorkerOptions(memory_limit_bytes=10 * 2**30)
    phases = [(await pool.claim(1, options=options)).phase for _ in range(2)]
    assert phases == [Phase.STARTING, Phase.PENDING]


async def test_claim_that_needs_more_cores_than_any_host_has_is_told_so(pool):
    """It would wait for ever."""
    await pool.joined("a", 2)
    claim = await pool.claim(1, cpu=16_000)
    assert pool.service.waits.of(claim.id).never
