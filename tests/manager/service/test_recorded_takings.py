"""What a rule took is what a dry run of the same rule finds in the records, whatever was before."""

from datetime import timedelta

import pytest
from manager_harness.idle_player import IdlePlayer, apply

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.protocol.policy import parse_policy
from jupyter_gpupool.scheduling.idle_dry_run import WouldTake, dry_run

USUAL, SHORT, SOONEST = (
    f'[queues.all]\nusers = ["*"]\n[[idle.rules]]\nname = "all"\naction = "hibernate"\n{times}'
    for times in ("", 'after = "2min"\nwarn = "1min"\n', 'after = "65s"\nwarn = "5s"\n')
)
DAY = timedelta(days=1)
POLICIES = pytest.mark.parametrize(
    "policy", [USUAL, SHORT, SOONEST], ids=["usual", "short", "soonest"]
)


async def taken(idler: IdlePlayer, policy: str, **more) -> list[WouldTake]:
    """It rests until the rule takes it; then the same policy is tried on what was seen."""
    warned = False
    for _ in range(25 * 6):
        claim = await idler.rest(10, **more)
        warned = warned or claim.warning is not None
        if claim.phase is not Phase.RUNNING:
            break
    assert warned
    assert claim.phase is Phase.HIBERNATING
    return await tried(idler, policy)


async def tried(idler: IdlePlayer, policy: str) -> list[WouldTake]:
    """What the rules would have taken of all that was seen by now."""
    pool = idler.pool
    written = await pool.store.recorded(pool.time.wall - DAY)
    seen = [use.recorded for use in (*written, *pool.service.books.open_records())]
    run = dry_run([(idler.claim_id, seen)], parse_policy(policy).idle)
    assert [count for _, count in run.warned] == [1] * len(run.takings)
    return list(run.takings)


@POLICIES
@pytest.mark.parametrize("worked_s", [0, 10, 65, 290, 301])
async def test_what_a_rule_took_is_found_again(idler, policy, worked_s):
    """However long it was used before it rested: at the moment when it was taken."""
    await apply(idler.pool, policy)
    await idler.rest(worked_s, Signal.TASKS, gpu_peak=900, gpu_mean=500)
    [taking] = await taken(idler, policy)
    assert idler.pool.time.wall - taking.evidence.until <= timedelta(seconds=10)


@POLICIES
async def test_it_is_found_after_work_now_and_then(idler, policy):
    """Though that is kept in pieces in which activity counts for all."""
    await apply(idler.pool, policy)
    for _ in range(8):
        await idler.rest(10, Signal.TASKS)
        await idler.rest(10, gpu_peak=20, gpu_mean=10)
    assert len(await taken(idler, policy)) == 1


@POLICIES
async def test_it_is_found_though_its_start_was_not_seen(idler, policy):
    """Unknown is never idle, and what follows it is, from when it is known."""
    await apply(idler.pool, policy)
    await idler.rest(20, quiet=frozenset())
    assert len(await taken(idler, policy)) == 1


@POLICIES
async def test_it_is_found_though_the_use_of_its_gpus_is_noisy(idler, policy):
    """What rests at one per cent and at none rests all the time."""
    await apply(idler.pool, policy)
    await idler.rest(10, Signal.TASKS)
    await idler.rest(10, gpu_peak=0, gpu_mean=0)
    assert len(await taken(idler, policy, gpu_peak=12, gpu_mean=3)) == 1


async def test_claim_that_was_used_in_time_is_not_found(idler):
    """Rest that ended before it was long enough stays apart from what followed."""
    await apply(idler.pool, USUAL)
    for _ in range(3):
        await idler.rest(60, Signal.TASKS)
        await idler.rest(14 * 60)
    assert await tried(idler, USUAL) == []
