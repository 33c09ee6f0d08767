"""How a worker ends, and what its exit code and last words say."""

import asyncio
import os
import signal
import time

import pytest
from distributed import Client, Event

from jupyter_gpupool.runtime.endings import STOPPED, UNKNOWN, exit_code_of
from jupyter_gpupool.runtime.problems import ExitCode

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (STOPPED, ExitCode.GOOD),
        ("scheduler-remove-worker", ExitCode.GOOD),
        ("scheduler-close", ExitCode.SCHEDULER_GONE),
        ("worker-handle-scheduler-connection-broken", ExitCode.SCHEDULER_GONE),
        (UNKNOWN, ExitCode.UNKNOWN_TO_AGENT),
        ("worker-execute-fail-hard", ExitCode.FAILED),
        ("", ExitCode.FAILED),
    ],
)
async def test_only_known_good_ends_are_no_failure(reason, code):
    """A reason nobody thought of counts as a failure."""
    assert exit_code_of(reason) is code


def _client(claim, state):
    return Client(state.address, security=claim.security(), asynchronous=True)


async def test_client_restart_ends_workers_without_failure(host, claim):
    """`client.restart()` closes workers that have no Nanny; the agent may fork them again."""
    state = await host.up(claim, "lease-a", "lease-b")
    async with _client(claim, state) as client:
        restarting = asyncio.create_task(client.restart(timeout=20))
        codes = [await host.end_of(claim, lease) for lease in ("lease-a", "lease-b")]
        for lease in ("lease-a", "lease-b"):
            await host.fork_worker(claim, lease, address=state.address)
        await restarting
        assert codes == [ExitCode.GOOD, ExitCode.GOOD]
        assert await client.submit(sum, [1]) == 1


async def test_busy_worker_still_restarts_at_once(host, claim):
    """A task that cannot be interrupted does not hold a restart up."""

    def be_busy():
        Event("busy").set()
        time.sleep(60)

    state = await host.up(claim, "lease-a")
    async with _client(claim, state) as client:
        busy = client.submit(be_busy)
        await Event("busy", client=client).wait()
        restarting = asyncio.create_task(client.restart(wait_for_workers=False))
        assert await host.end_of(claim, "lease-a", deadline_s=5) == ExitCode.GOOD
        await restarting
        assert busy.status == "cancelled"


async def test_worker_of_a_killed_scheduler_fails_with_the_reason(host, claim):
    """Without its scheduler a worker ends, not by a good exit, and its last line says why."""
    await host.up(claim, "lease-a")
    os.kill(host.pid_of(claim), signal.SIGKILL)
    assert await host.end_of(claim, "lease-a", deadline_s=10) == ExitCode.SCHEDULER_GONE
    log = (host.folder / f"{claim.claim_id}-lease-a.log").read_text()
    assert log.splitlines()[-1] == "The worker has ended: the claim's scheduler is gone."


@pytest.mark.parametrize("lease", ["", "lease-a"])
async def test_sigterm_ends_a_process_within_two_seconds(host, claim, lease):
    """Scheduler and worker go when they are told, in an orderly way."""
    await host.up(claim, "lease-a")
    os.kill(host.pid_of(claim, lease), signal.SIGTERM)
    assert await host.end_of(claim, lease, deadline_s=3) == ExitCode.GOOD


async def test_sigterm_ends_a_worker_that_waits_for_its_scheduler(host, claim):
    """One that was launched early and is not wanted after all does not linger."""
    await host.fork_worker(claim, "lease-a")
    await host.until(lambda: host.state_of(claim, "lease-a"))
    os.kill(host.pid_of(claim, "lease-a"), signal.SIGTERM)
    assert await host.end_of(claim, "lease-a", deadline_s=4) == ExitCode.GOOD


async def test_worker_says_why_before_it_goes(host, claim):
    """The agent hears `closing` with the reason."""
    await host.up(claim, "lease-a")
    os.kill(host.pid_of(claim, "lease-a"), signal.SIGTERM)
    await host.end_of(claim, "lease-a")
    assert host.state_of(claim, "lease-a").closing == "stopped by its agent"


async def test_ended_worker_leaves_no_folder_behind(host, claim):
    """Spill folders go with the worker."""
    await host.up(claim, "lease-a")
    os.kill(host.pid_of(claim, "lease-a"), signal.SIGTERM)
    await host.end_of(claim, "lease-a")
    assert not list(claim.folder.glob("dask-scratch-space/leaseworker-*"))
