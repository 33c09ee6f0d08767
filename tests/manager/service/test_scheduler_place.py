"""Where a claim's Dask scheduler runs."""

from functools import partial

from jupyter_gpupool.manager.service.hosts import HostSaid, host_said


async def test_schedulers_go_to_the_least_burdened_durable_host(pool):
    """Hosts that may go away hold none while a durable one is there."""
    await pool.joined("gpu", 4)
    for name in ("one", "two"):
        await pool.joined(name, 0, durable=True)
    places = [(await pool.claim(1)).scheduler.host_id for _ in range(4)]
    assert places == ["one", "two", "one", "two"]


async def test_without_a_durable_host_the_scheduler_is_with_its_workers(pool):
    """A scheduler beside its first worker is nearest."""
    await pool.joined("a", 1)
    await pool.joined("b", 2)
    assert (await pool.claim(2)).scheduler.host_id == "b"


async def test_a_durable_host_that_can_start_nothing_gets_none(pool):
    """Whatever it is meant for."""
    await pool.joined("gpu", 1)
    agent = await pool.joined("full", 0, durable=True)
    full = agent.report().model_copy(update={"can_start": False, "problem": "No space."})
    await pool.service.execute(partial(host_said, command=HostSaid(report=full)))
    assert (await pool.claim(1)).scheduler.host_id == "gpu"


async def test_a_scheduler_goes_where_no_start_failed(pool):
    """A broken durable host must not fail every claim."""
    await pool.joined("gpu", 1)
    await pool.joined("bad", 0, durable=True)
    claim = await pool.claim(1)
    await pool.joined("good", 0, durable=True)
    await pool.pass_s(121)
    assert pool.now(claim).failed_starts == 1
    await pool.wind_down(pool.agents["gpu"], pool.agents["bad"])
    assert pool.now(claim).scheduler.host_id == "good"
