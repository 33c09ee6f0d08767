"""Whatever dies while a claim hibernates: nothing finished is lost without a word."""

import asyncio
import os
import resource
import signal
import time

import numpy as np
import pytest
from distributed import wait

from jupyter_gpupool.protocol.keeping import HOLDER_NAME, KeepPhase, UnkeptReason, Wish

from .hibernating import client_of, hibernate, keeping, order, resume, until_phase

pytestmark = pytest.mark.asyncio(loop_scope="module")
MIB = 2**20


def _mark(number):
    return number, os.getpid(), time.time_ns(), np.zeros(8 * MIB, np.uint8)


def _name(mark):
    return mark[:3]


async def _marks(client, count):
    """Results that are never the same when they are computed again; their names."""
    results = client.map(_mark, range(count), pure=False)
    return results, await client.gather(client.map(_name, results, pure=False))


async def _names(client, results):
    return await client.gather(client.map(_name, results, pure=False))


async def _half_way(host, claim):
    """Hibernating, with all results of the second worker held; the first one is stopped."""
    order(host, claim, Wish.HIBERNATED)
    await host.until(lambda: keeping(host, claim).surveyed)
    os.kill(host.pid_of(claim, "lease-a"), signal.SIGSTOP)
    await host.fork_holder(claim)
    await host.until(lambda: keeping(host, claim).held)


async def test_holder_that_dies_half_way_changes_nothing(host, claim):
    """The workers had kept everything: they go on, and nothing is computed again."""
    state = await host.up(claim, "lease-a", "lease-b")
    async with client_of(claim, state) as client:
        results, before = await _marks(client, 40)
        await _half_way(host, claim)
        os.kill(host.pid_of(claim, HOLDER_NAME), signal.SIGKILL)
        kept = await until_phase(host, claim, KeepPhase.AWAKE)
        assert "nothing was changed" in kept.problem
        os.kill(host.pid_of(claim, "lease-a"), signal.SIGCONT)
        assert await _names(client, results) == before


async def test_new_holder_finishes_what_the_first_one_began(host, claim):
    """The wish stands: the next holder gets all of it."""
    state = await host.up(claim, "lease-a", "lease-b")
    async with client_of(claim, state) as client:
        results, before = await _marks(client, 20)
        await _half_way(host, claim)
        os.kill(host.pid_of(claim, HOLDER_NAME), signal.SIGKILL)
        await until_phase(host, claim, KeepPhase.AWAKE)
        os.kill(host.pid_of(claim, "lease-a"), signal.SIGCONT)
        await host.fork_holder(claim)
        kept = await until_phase(host, claim, KeepPhase.HIBERNATED)
        assert kept.held == 20
        await resume(host, claim, "lease-c")
        assert await _names(client, results) == before


async def test_holder_that_dies_afterwards_is_told_with_its_losses(host, claim):
    """What was computed is computed again; what was sent is gone, and that is said."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        computed = client.submit(sum, [1, 2], pure=False)
        (sent,) = await client.scatter([42])
        await wait(computed)
        await hibernate(host, claim)
        os.kill(host.pid_of(claim, HOLDER_NAME), signal.SIGKILL)
        lost = await until_phase(host, claim, KeepPhase.LOST)
        assert (lost.again, lost.gone) == (1, 1)
        assert "1 that are computed again, 1 that are gone" in lost.problem
        async with asyncio.timeout(60):
            while sent.status == "finished":
                await client.who_has()
        await resume(host, claim, "lease-c")
        assert await computed == 3


async def test_worker_that_dies_half_way_costs_its_own_results_alone(host, claim):
    """As whenever a worker dies: the others' are kept, and its own are computed again."""
    state = await host.up(claim, "lease-a", "lease-b")
    async with client_of(claim, state) as client:
        results, before = await _marks(client, 40)
        await _half_way(host, claim)
        os.kill(host.pid_of(claim, "lease-a"), signal.SIGKILL)
        await until_phase(host, claim, KeepPhase.HIBERNATED)
        await resume(host, claim, "lease-c")
        after = await _names(client, results)
    assert [name[0] for name in after] == list(range(40))
    lost = {name for name in before if name[1] == host.pid_of(claim, "lease-a")}
    assert {name for name in before if name in after} == set(before) - lost


async def test_full_disk_leaves_the_claim_as_it_was(host, claim):
    """The holder refuses what it cannot write; its key is named, and the workers go on."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        results, before = await _marks(client, 3)
        await host.fork_holder(claim, memory_bytes=0)
        # As a full disk does it: writing fails half way.
        limit = (MIB, MIB)
        resource.prlimit(host.pid_of(claim, HOLDER_NAME), resource.RLIMIT_FSIZE, limit)
        order(host, claim, Wish.HIBERNATED)
        refused = await until_phase(host, claim, KeepPhase.REFUSED)
        assert {each.reason for each in refused.unkept} == {UnkeptReason.NO_ROOM}
        assert await _names(client, results) == before
        assert await client.submit(sum, [1, 2], pure=False) == 3


async def test_holder_keeps_to_its_own_quota(host, claim):
    """Even when its scheduler was told none."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        results, before = await _marks(client, 3)
        refused = await hibernate(host, claim, quota_bytes=10 * MIB)
        assert refused.phase is KeepPhase.REFUSED
        assert {each.reason for each in refused.unkept} == {UnkeptReason.TOO_LARGE}
        assert await _names(client, results) == before


async def test_hibernation_that_is_called_off_changes_nothing(host, claim):
    """Its user came back half way: the workers go on with all they had, the holder goes.

    It does not wait for the worker that answers nothing.
    """
    state = await host.up(claim, "lease-a", "lease-b")
    async with client_of(claim, state) as client:
        results, before = await _marks(client, 40)
        await _half_way(host, claim)
        order(host, claim, Wish.AWAKE)
        assert await host.end_of(claim, HOLDER_NAME) == 0
        os.kill(host.pid_of(claim, "lease-a"), signal.SIGCONT)
        assert host.is_complete(claim, ["lease-a", "lease-b"])
        assert await _names(client, results) == before
        await until_phase(host, claim, KeepPhase.AWAKE)


async def test_survey_waits_for_no_change_of_mind(host, claim):
    """A stopped worker answers no question; calling off does not wait for it."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        results, before = await _marks(client, 3)
        os.kill(host.pid_of(claim, "lease-a"), signal.SIGSTOP)
        order(host, claim, Wish.SURVEYED)
        await host.until(lambda: keeping(host, claim).wish is Wish.SURVEYED)
        order(host, claim, Wish.AWAKE)
        await host.until(lambda: keeping(host, claim).wish is Wish.AWAKE)
        os.kill(host.pid_of(claim, "lease-a"), signal.SIGCONT)
        order(host, claim, Wish.SURVEYED)
        await host.until(lambda: keeping(host, claim).surveyed)
        assert keeping(host, claim).results == 3
        assert await _names(client, results) == before


async def test_worker_that_dies_while_resuming_costs_nothing_it_has_not(host, claim):
    """What was to come to it waits with the holder, and goes to another one."""
    state = await host.up(claim, "lease-a")
    async with client_of(claim, state) as client:
        results, before = await _marks(client, 40)
        await hibernate(host, claim)
        for lease in ("lease-b", "lease-c"):
            await host.fork_worker(claim, lease, address=state.address)
        # Registered is too soon: one that is stopped before it has said so takes no results.
        await client.wait_for_workers(2)
        os.kill(host.pid_of(claim, "lease-b"), signal.SIGSTOP)
        order(host, claim, Wish.AWAKE)
        await host.until(lambda: 0 < keeping(host, claim).held < 40)
        os.kill(host.pid_of(claim, "lease-b"), signal.SIGKILL)
        await until_phase(host, claim, KeepPhase.AWAKE)
        assert await _names(client, results) == before
