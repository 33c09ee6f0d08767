"""Commands on claims, in virtual time: request, scale, release, expiry."""

from datetime import timedelta
from functools import partial

import pytest

from jupyter_gpupool.manager.service.claims import RequestClaim, request_claim
from jupyter_gpupool.manager.service.once import OnceKey
from jupyter_gpupool.manager.service.records import UserRecord
from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.errors import BadRequest, Conflict, NotFound
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.request import ClaimRequest, WorkerBounds
from jupyter_gpupool.protocol.link import ProcessPhase


async def test_claim_waits_in_a_pool_without_hosts(pool):
    """Nothing to grant: pending, with a reason a user can read."""
    claim = await pool.claim(2)
    assert claim.phase is Phase.PENDING
    assert "2 devices wanted, 0 joined" in pool.service.waits.of(claim.id).reason


async def test_claim_starts_in_the_transaction_that_asked(pool):
    """One commit holds the request and the grant: no second round trip to the disk."""
    await pool.joined()
    commits = len(pool.store.commits)
    claim = await pool.claim(2)
    assert (claim.phase, len(pool.leases(claim))) == (Phase.STARTING, 2)
    assert len(pool.store.commits) == commits + 1


async def test_waiting_claim_starts_when_a_host_joins(pool):
    """The join itself brings the pass."""
    claim = await pool.claim(2)
    await pool.joined(devices=2)
    assert pool.now(claim).phase is Phase.STARTING


async def test_claim_runs_once_scheduler_and_minimum_are_up(pool):
    """The agent's report is what makes it run."""
    agent = await pool.joined()
    claim = await pool.claim(2)
    await pool.come_up(agent)
    running = pool.now(claim)
    assert running.phase is Phase.RUNNING
    assert running.scheduler.address == "tls://10.0.0.1:1"


async def test_released_claim_ends_only_on_the_agents_word(pool):
    """Ending until the host reports, at a generation that knows, that nothing is left."""
    agent = await pool.joined()
    claim = await pool.claim(2)
    await pool.come_up(agent)
    await pool.release(claim)
    agent.workers.clear()
    agent.schedulers.clear()
    await pool.say(agent)
    assert pool.now(claim).phase is Phase.ENDING
    await pool.make_so(agent)
    assert (pool.now(claim).phase, pool.now(claim).end) == (Phase.ENDED, EndKind.RELEASED)


async def test_pending_claim_is_cancelled_at_once(pool):
    """It holds nothing, so the same transaction ends it."""
    claim = await pool.release(await pool.claim(1))
    assert (claim.phase, claim.end) == (Phase.ENDED, EndKind.CANCELLED)


async def test_releasing_again_changes_nothing(pool):
    """The second release finds it over."""
    claim = await pool.release(await pool.claim(1))
    seq = pool.service.books.seq
    assert (await pool.release(claim), pool.service.books.seq) == (claim, seq)


async def test_stranger_learns_nothing(pool):
    """Another's claim and no claim are told in the same words."""
    claim = await pool.claim(1)
    stranger = pool.now(claim).owner
    claim = await pool.claim(1, user="bob")
    with pytest.raises(NotFound, match=f"There is no claim {claim.id}"):
        await pool.release(_owned_by(claim, stranger))


async def test_ended_claim_cannot_be_scaled(pool):
    """The refusal says why."""
    claim = await pool.release(await pool.claim(1))
    with pytest.raises(Conflict, match="is ended"):
        await pool.scale(claim, 2, 2)


async def test_claim_without_any_worker_is_refused(pool):
    """It could never start."""
    with pytest.raises(BadRequest, match="without any worker"):
        await pool.service.execute(partial(request_claim, command=_request(pool, 0)))


async def test_scaling_up_grants_what_is_free(pool):
    """More workers in the transaction that asked for them."""
    agent = await pool.joined(devices=3)
    claim = await pool.claim(1)
    await pool.come_up(agent)
    await pool.scale(claim, 1, 3)
    assert len(pool.leases(claim)) == 3


async def test_scaling_down_lets_the_scheduler_choose(pool):
    """All leases stay wanted; the scheduler is told how many to keep."""
    agent = await pool.joined(devices=3)
    claim = await pool.claim(3)
    await pool.come_up(agent)
    await pool.scale(claim, 1, 1)
    wanted = pool.desired(agent).claims[0]
    assert (wanted.scheduler.keep_workers, len(wanted.workers)) == (1, 3)


async def test_starting_claim_that_is_scaled_to_what_is_up_runs(pool):
    """It waits for no worker that it no longer wants, on a host that says nothing."""
    agent, silent = await pool.joined("a", devices=2), await pool.joined("b", devices=1)
    claim = await pool.claim(3)
    await pool.silent(silent)
    await pool.come_up(agent)
    await pool.scale(claim, 2, 2)
    assert pool.service.books.claims[claim.id].claim.phase is Phase.RUNNING


async def test_late_scale_down_takes_the_youngest(pool):
    """A scheduler that does not choose in time loses the choice."""
    agent = await pool.joined(devices=2)
    claim = await pool.claim(1)
    await pool.come_up(agent)
    oldest = pool.leases(claim)[0]
    pool.time.pass_s(1)
    await pool.scale(claim, 1, 2)
    await pool.come_up(agent)
    await pool.scale(claim, 1, 1)
    await pool.pass_s(31)
    kept = [lease.id for lease in pool.leases(claim) if lease.phase is not LeasePhase.ENDING]
    assert kept == [oldest.id]


async def test_late_scale_down_spares_who_received_the_results(pool):
    """The oldest hands over for longer than the deadline: nobody else has to go."""
    agent = await pool.joined(devices=3)
    claim = await pool.claim(1)
    for most in (1, 2, 3):
        pool.time.pass_s(1)
        await pool.scale(claim, 1, most)
        await pool.come_up(agent)
    oldest = min(pool.leases(claim), key=lambda lease: lease.granted_at)
    await pool.scale(claim, 1, 2)
    agent.make_so(pool.desired(agent))
    agent.workers[oldest.id] = ProcessPhase.RETIRING
    await pool.say(agent)
    await pool.pass_s(31)
    phases = {lease.id: lease.phase for lease in pool.leases(claim)}
    assert phases.pop(oldest.id) is LeasePhase.RETIRING
    assert set(phases.values()) == {LeasePhase.RUNNING}


async def test_scaling_up_while_one_retires_lets_nobody_else_go(pool):
    """Who hands over is no longer one of the workers the bounds are about."""
    agent = await pool.joined(devices=3)
    claim = await pool.claim(2)
    await pool.come_up(agent)
    await pool.scale(claim, 1, 1)
    agent.make_so(pool.desired(agent))
    agent.workers[pool.leases(claim)[0].id] = ProcessPhase.RETIRING
    await pool.say(agent)
    await pool.scale(claim, 1, 2)
    assert pool.desired(agent).claims[0].scheduler.keep_workers is None
    assert len(pool.leases(claim)) == 3


async def test_retirement_that_never_ends_is_cut_short(pool):
    """Ten minutes for the results, then the device is worth more."""
    agent = await pool.joined(devices=2)
    claim = await pool.claim(2)
    await pool.come_up(agent)
    await pool.scale(claim, 1, 1)
    leaving = pool.leases(claim)[0].id
    agent.make_so(pool.desired(agent))
    agent.workers[leaving] = ProcessPhase.RETIRING
    await pool.say(agent)
    await pool.pass_s(601)
    assert {x.id: x.phase for x in pool.leases(claim)}[leaving] is LeasePhase.ENDING


async def test_starting_claim_cannot_be_scaled_to_none(pool):
    """It could never come to run."""
    await pool.joined()
    claim = await pool.claim(1)
    with pytest.raises(BadRequest, match="without any worker"):
        await pool.scale(claim, 0, 0)


async def test_user_has_a_bounded_number_of_claims(pool):
    """One user cannot fill the manager's memory; others are not concerned."""
    pool.service.settings = Settings(most_claims_a_user=2)
    first = await pool.claim(1)
    await pool.claim(1)
    with pytest.raises(Conflict, match="2 claims"):
        await pool.claim(1)
    await pool.claim(1, user="bob")
    await pool.release(first)
    assert (await pool.claim(1)).phase is Phase.PENDING


async def test_ended_claim_keeps_no_secret(pool):
    """Neither its variables nor its keys outlive it, in memory or on disk."""
    agent = await pool.joined()
    claim = await pool.claim(1, env={"TOKEN": "s3cret"})
    await pool.come_up(agent)
    await pool.release(claim)
    await pool.wind_down(agent)
    record = pool.service.books.claims[claim.id]
    assert (record.claim.phase, record.secrets, record.claim.request.env) == (Phase.ENDED, None, {})
    assert pool.store.commits[-1].claims == (record,)


async def test_claim_keeps_its_os_user(pool):
    """A mapping that changes later concerns the next claim, not half of this one."""
    agent = await pool.joined(devices=2)
    claim = await pool.claim(1)
    await pool.come_up(agent)
    pool.service.books.users["ann"] = UserRecord(name="ann", os_user="other")
    await pool.scale(claim, 1, 2)
    assert {wanted.os_user for wanted in pool.desired(agent).claims} == {"ann"}


async def test_same_key_makes_one_claim(pool):
    """A repeated request gets the first one's claim and does nothing new."""
    command = _request(pool, 1, body="x")
    first = await pool.service.execute(partial(request_claim, command=command))
    second = await pool.service.execute(partial(request_claim, command=command))
    assert (first, len(pool.service.books.claims)) == (second, 1)


async def test_same_key_for_something_else_is_refused(pool):
    """A key belongs to one request."""
    await pool.service.execute(partial(request_claim, command=_request(pool, 1, body="x")))
    with pytest.raises(BadRequest, match="used for another request"):
        await pool.service.execute(partial(request_claim, command=_request(pool, 2, body="y")))


async def test_key_is_forgotten_after_a_day(pool):
    """Then it makes something new."""
    command = _request(pool, 1, body="x")
    first = await pool.service.execute(partial(request_claim, command=command))
    pool.time.pass_s(86_401)
    assert await pool.service.execute(partial(request_claim, command=command)) != first


async def test_claim_expires_at_its_time_limit(pool):
    """Exactly when its time has run, on monotonic time."""
    await pool.joined()
    claim = await pool.claim(1, time_limit=timedelta(minutes=10))
    await pool.pass_s(599)
    assert pool.now(claim).phase is Phase.STARTING
    await pool.pass_s(1)
    assert (pool.now(claim).phase, pool.now(claim).end) == (Phase.ENDING, EndKind.EXPIRED)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_wrong_wall_clock_changes_no_time_limit(pool, hours):
    """A clock set back makes nothing immortal, one set forth ends nothing early."""
    await pool.joined()
    claim = await pool.claim(1, time_limit=timedelta(minutes=10))
    pool.time.wall += timedelta(hours=hours)
    await pool.pass_s(599)
    assert pool.now(claim).phase is Phase.STARTING
    await pool.pass_s(1)
    assert pool.now(claim).phase is Phase.ENDING


def _request(pool, workers: int, body: str | None = None) -> RequestClaim:
    caller = pool.user("ann")
    key = OnceKey(user=caller.user, key="k", body=body) if body else None
    request = ClaimRequest(workers=WorkerBounds(workers, workers))
    return RequestClaim(caller=caller, request=request, key=key)


def _owned_by(claim, owner):
    return type("Seen", (), {"id": claim.id, "owner": owner})
