"""What a host is told to run."""

from jupyter_gpupool.manager.service.desired import desired_for
from jupyter_gpupool.manager.service.records import UserRecord
from jupyter_gpupool.manager.settings import Settings


async def test_workers_of_the_schedulers_host_need_no_address(pool):
    """They start beside it; only other hosts wait for the address."""
    holder, other = await pool.joined("a", 0, durable=True), await pool.joined("b", 1)
    await pool.claim(1)
    assert pool.desired(other).claims[0].scheduler_address is None
    await pool.come_up(holder)
    assert pool.desired(other).claims[0].scheduler_address == "tls://10.0.0.1:1"
    assert pool.desired(holder).claims[0].scheduler_address is None


async def test_host_is_told_only_what_is_its_own(pool):
    """No host gets another host's workers, nor the scheduler's key without its scheduler."""
    await pool.joined("a", 0, durable=True)
    other = await pool.joined("b", 1)
    await pool.claim(1)
    wanted = pool.desired(other).claims[0]
    assert (wanted.scheduler, len(wanted.workers)) == (None, 1)


async def test_os_user_is_the_users_own_or_the_one_named(pool):
    """An admin may map a pool user to another name on the machines."""
    await pool.joined(devices=2)
    pool.service.books.users["bob@example.org"] = UserRecord(name="bob@example.org", os_user="bob")
    await pool.claim(1, user="ann")
    await pool.claim(1, user="bob@example.org")
    wanted = desired_for("a", pool.service.books)
    assert {claim.os_user for claim in wanted} == {"ann", "bob"}


async def test_embedded_pool_runs_all_as_the_agents_user(pool):
    """It is one user's own."""
    pool.service.settings = Settings(run_as_users=False)
    await pool.joined()
    await pool.claim(1)
    [wanted] = desired_for("a", pool.service.books)
    assert wanted.os_user is None


async def test_next_start_has_another_number(pool):
    """Processes of a failed start are never taken for those of the next."""
    agent = await pool.joined(devices=2)
    claim = await pool.claim(1)
    await pool.make_so(agent)
    agent.schedulers[claim.id] = "failed"
    await pool.say(agent)
    assert pool.desired(agent).claims[0].start == 2
