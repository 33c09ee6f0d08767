"""A child's line to its agent, through agents that die, hang and do not know it."""

import fcntl
import os

import pytest
from distributed import Client

from jupyter_gpupool.protocol.launch import MOST_LOCKS, Orders, Role
from jupyter_gpupool.runtime.problems import ExitCode

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _replace_agent(host):
    await host.socket.close()
    host.states.clear()
    host.new_socket()
    await host.socket.start()


async def test_new_agent_hears_everything_anew(host, claim):
    """Children connect again by themselves and tell all that matters."""
    await host.up(claim, "lease-a")
    await _replace_agent(host)
    await host.until(lambda: host.is_complete(claim, ["lease-a"]))
    await host.until(lambda: (s := host.state_of(claim, "lease-a")) and s.registered)


@pytest.mark.parametrize("count", [1, MOST_LOCKS])
async def test_worker_hands_its_devices_locks_back(host, claim, tmp_path, count):
    """Locks outlive an agent: the next one gets the very same open files, in the same order."""
    devices = [tmp_path / f"device-{number}" for number in range(count)]
    locks = tuple(os.open(device, os.O_RDWR | os.O_CREAT) for device in devices)
    for lock in locks:
        fcntl.flock(lock, fcntl.LOCK_EX)
    await host.fork_worker(claim, "lease-a", lock_fds=locks)
    for lock in (*locks, *await host.until(lambda: host.locks.pop("lease-a", None))):
        os.close(lock)
    await _replace_agent(host)
    returned = await host.until(lambda: host.locks.get("lease-a"))
    inodes = [os.fstat(lock).st_ino for lock in returned]
    assert inodes == [device.stat().st_ino for device in devices]
    for device in devices:
        with device.open() as again, pytest.raises(BlockingIOError):
            fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_work_goes_on_without_an_agent(host, claim):
    """An agent's death is no event in a claim's life."""
    state = await host.up(claim, "lease-a")
    await host.socket.close()
    async with Client(state.address, security=claim.security(), asynchronous=True) as client:
        assert await client.submit(sum, [1, 2]) == 3
    host.new_socket()
    await host.socket.start()


async def test_orders_are_said_again_to_who_comes_back(host, claim):
    """A worker launched under one agent learns its scheduler from the next."""
    state = await host.up(claim)
    await host.fork_worker(claim, "lease-a")
    await host.until(lambda: host.state_of(claim, "lease-a"))
    await _replace_agent(host)
    host.socket.order(
        Role.WORKER, claim.claim_id, "lease-a", Orders(scheduler_address=state.address)
    )
    await host.until(lambda: host.is_complete(claim, ["lease-a"]))


async def test_child_that_no_agent_ever_knew_ends_itself(host, claim):
    """A process forked as its agent died is nobody's; the next agent turns it away and it goes."""
    host.is_admitting = False
    await host.fork_worker(claim, "lease-a")
    assert await host.end_of(claim, "lease-a", deadline_s=15) == ExitCode.UNKNOWN_TO_AGENT


async def test_child_that_was_known_once_never_gives_up(host, claim):
    """An agent that has lost its records turns it away; that must not cost a user's results."""
    await host.up(claim, "lease-a")
    host.is_admitting = False
    before = len(host.hellos)
    await _replace_agent(host)
    await host.until(lambda: len(host.hellos) >= before + 8)
    assert host.pid_of(claim) not in host.ends
