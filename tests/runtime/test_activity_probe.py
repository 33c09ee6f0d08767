"""What a scheduler says of what goes on in it, with real workers: nothing busy seems idle."""

import asyncio
import time

import pytest
from distributed import Client, Event, secede

pytestmark = pytest.mark.asyncio(loop_scope="module")
_DEADLINE_S = 60.0


def _client(claim, state, **options):
    return Client(state.address, security=claim.security(), asynchronous=True, **options)


async def _until(host, claim, holds):
    """The next look into the scheduler of which this holds."""
    seen = host.activities.setdefault(claim.claim_id, [])
    so_far = len(seen)
    await host.until(lambda: any(holds(each) for each in seen[so_far:]), _DEADLINE_S)
    return next(each for each in seen[so_far:] if holds(each))


def _wait_for(name):
    Event(name).wait(_DEADLINE_S)


def _wait_aside(name):
    secede()
    Event(name).wait(_DEADLINE_S)


class Counter:
    """An actor."""

    def linger(self, seconds):
        time.sleep(seconds)
        return seconds


async def test_claim_at_rest_is_quiet(host, claim):
    """A client that holds results and only keeps its connection alive does nothing."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        assert await client.submit(sum, [1, 2]) == 3
        held = await client.scatter([1, 2])
        seen = await _until(host, claim, lambda a: a.quiet_s is not None and a.quiet_s > 1.0)
        assert len(held) == 2
    assert (seen.processing, seen.runnable, seen.runs, seen.transfers) == (0, 0, 0, 0)
    assert (seen.clients, seen.begun) == (1, 1)


@pytest.mark.parametrize("function", [_wait_for, _wait_aside], ids=["plain", "seceded"])
async def test_running_task_is_activity(host, claim, function):
    """Also one that has seceded, which distributed's own idleness may miss."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        running = client.submit(function, "go", pure=False)
        await _until(host, claim, lambda a: a.processing == 1)
        await Event("go").set()
        await running
        await _until(host, claim, lambda a: a.processing == 0)


async def test_tasks_between_two_looks_are_counted(host, claim):
    """A burst that is over before the next look is no idleness."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        await client.gather(client.map(lambda n: n + 1, range(50)))
        await _until(host, claim, lambda a: a.begun == 50 and a.processing == 0)


async def test_function_of_client_run_is_activity(host, claim):
    """It is no task, and no worker counts it."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        running = asyncio.ensure_future(client.run(time.sleep, 2.5))
        await _until(host, claim, lambda a: a.runs == 1)
        await running
        seen = await _until(host, claim, lambda a: a.runs == 0)
        assert seen.runs_begun == 1


async def test_actors_and_their_calls_are_activity(host, claim):
    """An actor lives on its worker, and its methods are no tasks."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        counter = await client.submit(Counter, actor=True)
        await _until(host, claim, lambda a: a.actors == 1 and a.runs == 0)
        call = counter.linger(2.5)
        await _until(host, claim, lambda a: a.runs == 1)
        assert await call == 2.5


async def test_task_that_can_never_run_is_told_apart(host, claim):
    """One wants what no worker of the claim has; the other one waits for a worker."""
    state = await host.up(claim)
    async with _client(claim, state) as client:
        never = client.submit(sum, [1], resources={"telescope": 1}, pure=False)
        later = client.submit(sum, [2], pure=False)
        seen = await _until(host, claim, lambda a: a.stuck + a.runnable == 2)
        assert (seen.stuck, seen.runnable) == (1, 1)
        await host.fork_worker(claim, "lease-a", address=state.address)
        assert await later == 2
        await _until(host, claim, lambda a: a.stuck == 1 and a.runnable == 0)
        assert never.status == "pending"


async def test_client_that_left_is_missed(host, claim):
    """Nobody is connected any more; the workers' own clients never count."""
    state = await host.up(claim, "lease-a")
    async with _client(claim, state):
        await _until(host, claim, lambda a: a.clients == 1)
    await _until(host, claim, lambda a: a.clients == 0)
