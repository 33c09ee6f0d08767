"""What hosts say of processes that run but do not work: kept until they say it no more."""

import pytest

from jupyter_gpupool.manager.service.telling import MOST_TOLD, WINDOW_S
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.process_problem import SCHEDULER

STILL = "Its scheduler, process 7, was stopped."


@pytest.fixture
async def spread(pool):
    """A running claim with its scheduler on one host and its workers on two others."""
    holder = await pool.joined("holder", 0, durable=True)
    hosts = [await pool.joined("gn1", 1), await pool.joined("gn2", 1)]
    claim = await pool.claim(2)
    await pool.come_up(holder, *hosts)
    assert pool.now(claim).phase is Phase.RUNNING
    return claim, holder, hosts


async def test_stopped_scheduler_is_kept_with_its_claim(pool, spread):
    """Said once, however often it is reported, and void when the host says so."""
    claim, holder, _ = spread
    holder.problems[claim.id] = STILL
    await pool.say(holder)
    told = pool.now(claim)
    await pool.say(holder)
    assert [(each.process, each.text) for each in told.problems] == [(SCHEDULER, STILL)]
    assert (pool.now(claim), told.reason, told.phase) == (told, STILL, Phase.RUNNING)
    holder.problems.clear()
    await pool.say(holder)
    assert pool.now(claim).problems == ()


async def test_each_host_speaks_of_its_own_processes_alone(pool, spread):
    """What one says of its worker stays while others report, in an order of its own."""
    claim, holder, hosts = spread
    leases = {lease.host_id: lease.id for lease in pool.leases(claim)}
    for host in reversed(hosts):
        host.problems[leases[host.host_id]] = f"Its worker on {host.host_id} stands still."
        await pool.say(host)
    holder.problems[claim.id] = STILL
    await pool.say(holder)
    told = pool.now(claim).problems
    assert [each.process for each in told] == [SCHEDULER, *sorted(leases.values())]
    await pool.say(hosts[0])
    assert pool.now(claim).problems == told


async def test_problem_goes_with_its_process(pool, spread):
    """A worker whose host is lost stands still no more; neither does a claim that is over."""
    claim, holder, hosts = spread
    lease = next(x.id for x in pool.leases(claim) if x.host_id == hosts[0].host_id)
    hosts[0].problems[lease] = "Its worker stands still."
    holder.problems[claim.id] = STILL
    await pool.say(hosts[0])
    await pool.say(holder)
    await pool.lost(hosts[0])
    await pool.say(holder)
    assert [each.process for each in pool.now(claim).problems] == [SCHEDULER]
    assert (await pool.release(claim)).problems == ()


async def test_process_that_talks_much_is_told_of_seldom(pool, spread):
    """Its user's code writes no event a report; what it said last is told in the end."""
    claim, holder, _ = spread
    before = len(pool.service.hub.since(0))
    for number in range(1_000):
        holder.problems[claim.id] = f"No. {number} is wrong."
        await pool.say(holder)
    assert len(pool.service.hub.since(0)) - before <= MOST_TOLD
    pool.time.pass_s(WINDOW_S)
    await pool.say(holder)
    assert [each.text for each in pool.now(claim).problems] == ["No. 999 is wrong."]
