"""Claims and Python environments: who is refused at once, and which hosts are left out."""

import pytest

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import BadRequest, Conflict
from jupyter_gpupool.protocol.link import EnvironmentReport

OURS = (("dask", "2026.7.1"), ("python", "3.11.7"))
OLD = (("dask", "2026.7.1"), ("python", "3.10.1"))


def environment(name="default", **told):
    """An environment that agrees with `OURS`, with whatever differs."""
    return EnvironmentReport(**({"name": name, "versions": dict(OURS)} | told))


@pytest.fixture
def offering(pool):
    """Lets a host join that offers these environments."""

    async def join(name, *environments, devices=2, runs_kernels=False):
        agent = pool.host(name, devices)
        agent.environments, agent.runs_kernels = environments, runs_kernels
        await pool.join(agent)
        return agent

    return join


async def test_kernel_that_agrees_with_no_host_is_refused_with_both_versions(pool, offering):
    """Instead of workers that could read nothing of what it sends."""
    await offering("a", environment())
    with pytest.raises(Conflict, match=r"Python 3\.10\.1.*default.*Python 3\.11\.7") as told:
        await pool.claim(1, kernel_versions=OLD)
    assert told.value.hint == "Use a kernel with Python 3.11."


async def test_refusal_names_environments_that_would_do(pool, offering):
    """Whatever agrees is the shorter way out, the kernel's own environment included."""
    old = environment("old", versions=dict(OLD))
    await offering("a", environment(), old, environment("new"), runs_kernels=True)
    with pytest.raises(Conflict) as told:
        await pool.claim(1, kernel_versions=OLD, kernel_interpreter="/home/ann/python")
    assert 'Choose environment="kernel" or environment="old", or use' in told.value.hint


async def test_kernel_of_unknown_versions_is_not_refused(pool, offering):
    """Nor is one that claims from a host whose environment nobody has looked into."""
    await offering("a", environment(), environment("new", versions={}))
    assert (await pool.claim(1)).phase is Phase.STARTING
    assert (await pool.claim(1, environment="new", kernel_versions=OLD)).phase is Phase.STARTING


async def test_unknown_environment_is_refused_with_the_names_there_are(pool, offering):
    """A misspelt name waits for nothing."""
    await offering("a", environment(), environment("rapids"))
    with pytest.raises(BadRequest, match='named "rapid"') as told:
        await pool.claim(1, environment="rapid", kernel_versions=OURS)
    assert told.value.field == "environment"
    assert 'environment="rapids"' in told.value.hint


async def test_claim_too_large_for_who_has_its_environment_is_told_who_lacks_it(pool, offering):
    """Some have it, so it would be wrong to say that nobody does."""
    await offering("a", environment(), environment("rapids"))
    await offering("b", environment())
    claim = await pool.claim(3, environment="rapids")
    wait = pool.service.waits.of(claim.id)
    assert wait.never
    assert 'b has no Python environment named "rapids".' in wait.reason
    assert "No host" not in wait.reason


async def test_what_a_host_without_devices_lacks_is_no_reason_to_wait(pool, offering):
    """No worker would run there in any case."""
    await offering("a", environment(), environment("rapids"))
    await offering("d", environment(), devices=0)
    claim = await pool.claim(3, environment="rapids")
    assert "d has no" not in pool.service.waits.of(claim.id).reason


async def test_broken_environment_is_refused_with_what_it_lacks(pool, offering):
    """Its user learns whom to tell what."""
    await offering("a", environment(), environment("bare", problem="it lacks dask_cuda"))
    with pytest.raises(Conflict, match='"bare" of a cannot be used: it lacks dask_cuda'):
        await pool.claim(1, environment="bare", kernel_versions=OURS)


async def test_claim_waits_while_there_is_no_host(pool):
    """Nobody knows yet what a host will bring."""
    claim = await pool.claim(1, environment="rapids", kernel_versions=OLD)
    assert claim.phase is Phase.PENDING


async def test_hosts_that_disagree_are_not_used(pool, offering):
    """A claim gets less than there is rather than workers it cannot talk to."""
    await offering("a", environment(versions=dict(OLD)))
    good = await offering("b", environment())
    claim = await pool.claim(1, 4, kernel_versions=OURS)
    assert {lease.host_id for lease in pool.leases(claim)} == {good.host_id}
    assert len(pool.leases(claim)) == 2


async def test_scheduler_is_kept_from_a_durable_host_that_disagrees(pool, offering):
    """It reads what the kernel pickles, as the workers do."""
    durable = pool.host("d", 0, durable=True)
    durable.environments = (environment(versions=dict(OLD)),)
    await pool.join(durable)
    good = await offering("b", environment())
    claim = await pool.claim(1, kernel_versions=OURS)
    assert pool.now(claim).scheduler.host_id == good.host_id


async def test_workers_added_later_agree_with_the_scheduler_that_is_there(pool, offering):
    """Also if nobody knows what the kernel has."""
    first = await offering("a", environment(), devices=1)
    claim = await pool.claim(1, 3)
    await pool.come_up(first)
    await offering("b", environment(versions=dict(OLD)))
    same = await offering("c", environment(), devices=1)
    assert [lease.host_id for lease in pool.leases(claim)] == [first.host_id, same.host_id]


async def test_environment_that_is_mended_lets_waiting_claims_start(pool, offering):
    """Nothing but a report is needed for that."""
    agent = await offering("a", environment())
    await offering("b", environment(), devices=1)
    taken = await pool.claim(3)
    waiting = await pool.claim(3, kernel_versions=OURS)
    agent.environments = (environment(problem="it lacks dask_cuda"),)
    await pool.say(agent)
    await pool.release(taken)
    await pool.wind_down(*pool.agents.values())
    wait = pool.service.waits.of(waiting.id)
    assert wait.never
    assert "it lacks dask_cuda" in wait.reason
    agent.environments = (environment(),)
    await pool.say(agent)
    assert pool.now(waiting).phase is Phase.STARTING


async def test_kernels_own_environment_needs_a_host_that_allows_it(pool, offering):
    """The hosts that do not are left out, and if none does it is refused."""
    own = {"environment": "kernel", "kernel_interpreter": "/home/ann/bin/python"}
    await offering("a", environment())
    with pytest.raises(Conflict, match="kernel's own environment"):
        await pool.claim(1, kernel_versions=OLD, **own)
    willing = await offering("b", environment(), runs_kernels=True)
    claim = await pool.claim(1, kernel_versions=OLD, **own)
    assert {lease.host_id for lease in pool.leases(claim)} == {willing.host_id}
    [wanted] = pool.desired(willing).claims
    assert (wanted.environment, wanted.interpreter) == ("kernel", "/home/ann/bin/python")


async def test_kernels_own_environment_needs_its_interpreter(pool, offering):
    """Nobody can guess where it is."""
    await offering("a", environment(), runs_kernels=True)
    with pytest.raises(BadRequest, match="interpreter is not known"):
        await pool.claim(1, environment="kernel")


async def test_interpreter_is_told_only_to_whom_it_matters(pool, offering):
    """Where people keep their files is nobody's business elsewhere."""
    agent = await offering("a", environment())
    await pool.claim(1, kernel_interpreter="/home/ann/bin/python")
    assert pool.desired(agent).claims[0].interpreter == ""
