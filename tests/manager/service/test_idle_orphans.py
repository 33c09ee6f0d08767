"""Claims whose kernels are gone for good, told apart from all that only looks like it."""

from functools import partial

import pytest
from manager_harness.idle_player import a_running_claim, apply

from jupyter_gpupool.manager.service.hosts import HostSaid, host_said
from jupyter_gpupool.manager.service.using import kernels_gone
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.idle_rule import Ground
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.protocol.link import GoneKernel
from jupyter_gpupool.protocol.using import KernelState

ORPHANS = """
[queues.all]
users = ["*"]
[[idle.rules]]
name = "all"
action = "release"
orphan = { after = "2min", action = "release" }
"""
MINUTE = 60
ALONE = {"clients": 0}


@pytest.fixture
async def used(pool):
    """A claim that a kernel uses, under a rule on orphans."""
    await apply(pool, ORPHANS)
    idler = await a_running_claim(pool)
    await idler.attach()
    await idler.rest_with(2 * MINUTE, KernelState.IDLE)
    return idler


async def killed(idler) -> None:
    """Its server sees the kernel die too often, or a person shuts it down."""
    gone = partial(kernels_gone, claim_id=idler.claim_id, ids={"k"})
    await idler.pool.service.execute(gone)


async def test_killed_kernel_ends_its_claim_after_two_minutes(used):
    """Its user is told at once, and has all that time to come back."""
    await killed(used)
    warned = (await used.rest(10, **ALONE)).warning
    assert warned.evidence.ground is Ground.ORPHANED
    assert "had neither kernel nor client" in warned.reason
    assert (await used.rest(MINUTE + 50, **ALONE)).phase is Phase.RUNNING
    ended = await used.rest(10, **ALONE)
    assert (ended.phase, ended.end) == (Phase.ENDING, EndKind.RECLAIMED)


async def test_what_an_orphan_still_computes_may_run_to_its_end(used):
    """Somebody may come back for it."""
    await killed(used)
    await used.rest(10 * MINUTE, Signal.TASKS, **ALONE)
    assert used.claim.warning is None


async def test_restarted_kernel_is_no_orphan(used):
    """Its process is another one, and its server still has it."""
    agent = used.agent
    report = said_gone(agent, GoneKernel(claim_id=used.claim_id, kernel_id="k", pid=7, started=1))
    await used.pool.service.execute(report)
    used.server_says(KernelState.STARTING)
    await used.rest(10, **ALONE)
    await used.rest_with(5 * MINUTE, KernelState.IDLE, **ALONE)
    assert used.claim.phase is Phase.RUNNING
    assert used.claim.warning is None


async def test_closed_browser_is_nothing(used):
    """The kernel lives on, and so does its client."""
    await used.rest_with(10 * MINUTE, KernelState.IDLE)
    assert used.claim.warning is None


@pytest.mark.parametrize("clients", [0, 1])
async def test_laptop_that_sleeps_keeps_its_claim(used, clients):
    """Nothing is heard of its kernel, and its client may be cut off: nobody says that it died."""
    await used.rest(60 * MINUTE, clients=clients)
    assert (used.claim.phase, used.claim.warning) == (Phase.RUNNING, None)


async def test_killed_server_takes_its_kernels_along(used):
    """Nobody is left to say so but the host that they ran on."""
    command = said_gone(
        used.agent, GoneKernel(claim_id=used.claim_id, kernel_id="k", pid=7, started=1)
    )
    await used.pool.service.execute(command)
    [kernel] = used.claim.kernels
    assert kernel.gone_since == used.pool.time.wall
    assert (await used.rest(2 * MINUTE + 10, **ALONE)).phase is Phase.ENDING


async def test_another_process_by_that_name_is_not_meant(used):
    """A late word on the one before it changes nothing."""
    command = said_gone(
        used.agent, GoneKernel(claim_id=used.claim_id, kernel_id="k", pid=6, started=1)
    )
    await used.pool.service.execute(command)
    assert used.claim.kernels[0].gone_since is None


async def test_kernel_that_is_gone_is_told_once(used):
    """As an event, however often it is said."""
    await killed(used)
    await killed(used)
    events = [event for change in used.pool.store.commits for event in change.events]
    told = [e.reason for e in events if e.kind is EventKind.CLAIM_KERNELS]
    assert told == ["k uses it now.", "k has ended without giving the claim back."]


async def test_another_kernel_is_enough(used):
    """A claim is an orphan only when all are gone."""
    await used.attach("second", pid=8)
    await killed(used)
    used.server_says(KernelState.IDLE, 600.0, "second")
    assert (await used.rest(30, **ALONE)).warning is None


def said_gone(agent, gone: GoneKernel):
    """The agent's report with one kernel that has ended on its host."""
    report = agent.report().model_copy(update={"gone_kernels": (gone,)})
    return partial(host_said, command=HostSaid(report=report))
