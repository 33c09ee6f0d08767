"""Scaling down for real: results move, the agent is told, repeated orders do nothing."""

import os
import signal

import pytest
from distributed import Client, wait

from jupyter_gpupool.protocol.launch import Orders, Role

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _client(claim, state):
    return Client(state.address, security=claim.security(), asynchronous=True)


def _order(host, claim, **orders):
    host.socket.order(Role.SCHEDULER, claim.claim_id, "", Orders(**orders))


async def test_results_of_a_retired_worker_move_to_the_others(host, claim):
    """Nothing that was computed is lost, and nothing is computed again."""
    state = await host.up(claim, "lease-a", "lease-b")
    async with _client(claim, state) as client:
        results = client.map(lambda n: (n, os.getpid()), range(40))
        await wait(results)
        before = await client.gather(results)
        _order(host, claim, retire=("lease-a",))
        await host.until(lambda: host.is_complete(claim, ["lease-b"]))
        assert await client.gather(results) == before
    assert host.state_of(claim).retired == ("lease-a",)


async def test_worker_is_told_retired_before_it_ends(host, claim):
    """So the agent never takes a retired worker's end for a crash."""
    await host.up(claim, "lease-a", "lease-b")
    _order(host, claim, keep_workers=1)
    await host.until(lambda: host.state_of(claim).retired)
    (name,) = host.state_of(claim).retired
    assert await host.end_of(claim, name) == 0
    said = host.states[f"{claim.claim_id}/"]
    assert next(s.retiring for s in said if s.retiring) == (name,)


async def test_last_worker_can_be_retired_too(host, claim):
    """Scaling to nothing works, even when nobody is left to take the results."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        result = client.submit(sum, [1, 2])
        await result
        _order(host, claim, keep_workers=0)
        assert await host.end_of(claim, "lease-a") == 0


async def test_last_worker_waits_for_whoever_takes_its_results(host, claim):
    """It was named, not chosen: what it has goes to the next worker, however late that comes."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        result = client.submit(os.getpid, pure=False)
        before = await result
        _order(host, claim, retire=("lease-a",))
        await host.until(lambda: host.state_of(claim).retiring)
        await host.fork_worker(claim, "lease-b", address=state.address)
        assert await host.end_of(claim, "lease-a") == 0
        assert await client.gather(result) == before


async def test_last_worker_without_results_waits_for_nobody(host, claim):
    """There is nothing to hand over."""
    await host.up(claim, "lease-a")
    _order(host, claim, retire=("lease-a",))
    assert await host.end_of(claim, "lease-a") == 0


async def test_killed_worker_is_missed_at_once(host, claim):
    """A worker that dies is out of the scheduler's state without waiting for a time-out."""
    await host.up(claim, "lease-a", "lease-b")
    os.kill(host.pid_of(claim, "lease-a"), signal.SIGKILL)
    await host.until(lambda: host.is_complete(claim, ["lease-b"]), deadline_s=5)
    assert host.state_of(claim).retired == ()


async def test_worker_gets_its_next_tasks_within_two_milliseconds(host, claim):
    """With one task ahead it would otherwise wait for the fifth millisecond to pass."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        assert await client.run_on_scheduler(_gathering_times) == [0.002]


def _gathering_times(dask_scheduler):
    return [stream.interval for stream in dask_scheduler.stream_comms.values()]
