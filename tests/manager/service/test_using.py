"""Kernels that come and go, and keeps, in virtual time."""

from datetime import timedelta
from functools import partial

import pytest

from jupyter_gpupool.manager.service.arrows import take
from jupyter_gpupool.manager.service.once import OnceKey
from jupyter_gpupool.manager.service.using import (
    AttachKernel,
    DetachKernel,
    KeepClaim,
    attach_kernel,
    detach_kernel,
    keep_claim,
)
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.claim_events import Warned
from jupyter_gpupool.pool.errors import BadRequest, Conflict, NotAllowed, NotFound
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.protocol.using import KernelBody

HOUR = timedelta(hours=1)


@pytest.fixture
def attach(pool):
    """Attaches a kernel to a claim as its owner, or as somebody else."""

    async def run(claim, kernel="k", *, pid=1, user="ann", role=Role.USER):
        body = KernelBody(host="h", boot_id="b", pid=pid, started=7, name="a.ipynb")
        command = AttachKernel(
            caller=pool.user(user, role), claim_id=claim.id, kernel_id=kernel, body=body
        )
        await pool.service.execute(partial(attach_kernel, command=command))
        return pool.now(claim).kernels

    return run


@pytest.fixture
def detach(pool):
    """Detaches a kernel from a claim, as its owner."""

    async def run(claim, kernel="k"):
        command = DetachKernel(caller=pool.user("ann"), claim_id=claim.id, kernel_id=kernel)
        await pool.service.execute(partial(detach_kernel, command=command))
        return pool.now(claim).kernels

    return run


@pytest.fixture
def keep(pool):
    """Keeps a claim, as its owner."""

    async def run(claim, duration=HOUR, *, key=None, **more):
        once = OnceKey(user="ann", key=key, body=str(duration)) if key else None
        command = KeepClaim(
            caller=pool.user("ann"), claim_id=claim.id, duration=duration, key=once, **more
        )
        await pool.service.execute(partial(keep_claim, command=command))
        return pool.now(claim)

    return run


@pytest.fixture
async def running(pool):
    """A claim with two workers that run."""
    agent = await pool.joined()
    claim = await pool.claim(2)
    await pool.come_up(agent)
    return pool.now(claim)


async def test_kernel_is_told_once(pool, running, attach):
    """The second time nothing is written and nobody is told."""
    await attach(running)
    seq = pool.service.books.seq
    [kernel] = await attach(running)
    assert (kernel.id, kernel.pid, pool.service.books.seq) == ("k", 1, seq)
    assert _told(pool)[-1] == (EventKind.CLAIM_KERNELS, "a.ipynb uses it now.")


async def test_kernel_changes_neither_phase_nor_story(pool, running, attach):
    """It is no arrow: what the user reads of the claim stays."""
    await attach(running)
    after = pool.now(running)
    assert (after.phase, after.reason, after.story) == (
        running.phase,
        running.reason,
        running.story,
    )


async def test_kernel_that_goes_is_told_once(pool, running, attach, detach):
    """Whoever is not there is not missed."""
    await attach(running)
    assert await detach(running) == ()
    assert _told(pool)[-1] == (EventKind.CLAIM_KERNELS, "a.ipynb uses it no more.")
    seq = pool.service.books.seq
    assert (await detach(running), pool.service.books.seq) == ((), seq)


async def test_waiting_claim_has_kernels_too(pool, attach):
    """The notebook is there before the devices are."""
    assert len(await attach(await pool.claim(1))) == 1


async def test_claim_that_is_over_takes_no_kernel(pool, running, attach, detach):
    """From its end on; and letting go is always possible."""
    await attach(running)
    await pool.release(running)
    with pytest.raises(Conflict, match="is ending: no kernel can use it any more"):
        await attach(running, "other")
    assert await detach(running) == ()


async def test_ended_claim_remembers_no_kernel(pool, running, attach):
    """Nobody uses what is gone."""
    await attach(running)
    await pool.release(running)
    await pool.wind_down(*pool.agents.values())
    assert pool.now(running).kernels == ()
    assert list(pool.service.books.with_kernels("ann")) == []


async def test_kernels_are_the_owners_alone(running, attach):
    """A stranger learns nothing, an admin may look but not attach."""
    with pytest.raises(NotFound):
        await attach(running, user="bob")
    with pytest.raises(NotAllowed):
        await attach(running, user="root", role=Role.ADMIN)


async def test_keep_counts_from_now(pool, running, keep):
    """And people read who wants it and why."""
    kept = await keep(running, reason="lunch")
    assert kept.kept_until == pool.time.wall + HOUR
    assert _told(pool)[-1] == (EventKind.CLAIM_KEPT, "Kept for 1 h: lunch")


async def test_keep_can_be_taken_back(pool, running, keep):
    """With no time at all."""
    await keep(running)
    assert (await keep(running, timedelta(0))).kept_until is None
    assert _told(pool)[-1] == (EventKind.CLAIM_KEPT, "No longer kept.")


async def test_keep_is_bounded_by_the_setting(pool, running, keep):
    """The refusal says the bound, and nothing is kept."""
    pool.service.settings = Settings(longest_keep_alive=HOUR)
    with pytest.raises(BadRequest, match="can be kept for 1 h at a time"):
        await keep(running, HOUR + timedelta(seconds=1))
    assert pool.now(running).kept_until is None
    assert (await keep(running, HOUR)).kept_until is not None


async def test_claim_without_workers_cannot_be_kept(pool, keep):
    """There is nothing to be taken."""
    waiting = await pool.claim(1)
    with pytest.raises(Conflict, match="is pending"):
        await keep(waiting)
    ended = await pool.release(waiting)
    with pytest.raises(Conflict, match="is ended"):
        await keep(ended)


async def test_repeated_keep_does_nothing_new(pool, running, keep):
    """The same key later: the keep still ends when it did."""
    first = (await keep(running, key="k")).kept_until
    pool.time.pass_s(60)
    assert (await keep(running, key="k")).kept_until == first
    assert (await keep(running, key="other")).kept_until == first + timedelta(minutes=1)


async def test_keep_clears_a_warning(pool, running, keep):
    """Whoever says that they need it is not warned any more; taking a keep back warns nobody."""
    warned = Warned(reason="Idle for 30 min.", rule="idle", after=timedelta(minutes=5))
    await pool.service.execute(lambda unit: take(unit, running.id, warned))
    assert pool.now(running).warning is not None
    assert (await keep(running)).warning is None
    kinds = [kind for kind, _ in _told(pool)[-3:]]
    assert kinds == [EventKind.CLAIM_CHANGED, EventKind.CLAIM_CHANGED, EventKind.CLAIM_KEPT]


async def test_end_takes_the_keep_along(pool, running, keep):
    """An ended claim is kept from nothing."""
    await keep(running)
    assert (await pool.release(running)).kept_until is None


def _told(pool):
    return [(event.kind, event.reason) for event in pool.service.hub.since(0)]
