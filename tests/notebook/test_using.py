"""What may be asked of a claim one holds, by its cluster and by its name."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from distributed import Client
from waiting import eventually

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook import asking
from jupyter_gpupool.notebook.claim import attach, claim
from jupyter_gpupool.notebook.moments import here_and_now
from jupyter_gpupool.notebook.terms import body_of
from jupyter_gpupool.notebook.used_from import used_from
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import BadRequest, Conflict, NotFound
from jupyter_gpupool.protocol.api import ClaimView

pytestmark = pytest.mark.e2e
_WITHIN_S = 30.0
View = Callable[[str], ClaimView]


def test_claim_explains_itself(pool: Pool) -> None:
    """While it runs and after its end, by cluster and by name."""
    with claim(1, name="explained", pool=pool) as cluster:
        assert cluster.explain().phase is Phase.RUNNING
        assert asking.explain("explained", pool=pool).claim == cluster.claim_id
    assert cluster.explain().phase in (Phase.ENDING, Phase.ENDED)


def test_claim_is_meant_by_its_cluster_or_its_view(pool: Pool) -> None:
    """As a variable holds it; the cluster's own pool is asked."""
    with claim(1, pool=pool) as cluster:
        (view,) = asking.claims(pool=pool)
        assert asking.explain(cluster).claim == asking.explain(view, pool=pool).claim == view.id
        assert asking.scale(cluster, 2).workers.max == 2
        with attach(cluster) as again:
            assert again.claim_id == cluster.claim_id
        assert asking.release(cluster).id == cluster.claim_id


def test_claim_shows_its_logs(pool: Pool) -> None:
    """Of its scheduler first, then of each worker, or of one process."""
    with claim(1, pool=pool) as cluster:
        assert len(cluster.logs(lines=5).processes) == 2
        assert [log.process for log in cluster.logs("scheduler").processes] == ["scheduler"]
        assert "scheduler" in repr(asking.logs(cluster.claim_id, pool=pool))


def test_claim_is_kept_for_as_long_as_asked(pool: Pool, view_of: View) -> None:
    """Until then nothing takes it as idle; 0 takes that back."""
    with claim(1, pool=pool) as cluster:
        until = cluster.keep_alive("1h", "a long build")
        assert until is not None
        assert abs(until - here_and_now() - timedelta(hours=1)) < timedelta(minutes=1)
        assert view_of(cluster.claim_id).kept_until == until
        assert asking.keep_alive(cluster.claim_id, 0, pool=pool) is None


def test_nonsense_is_no_time_to_keep(pool: Pool) -> None:
    """Refused in a sentence."""
    with claim(1, pool=pool) as cluster, pytest.raises(BadRequest, match="not a time"):
        cluster.keep_alive("soon")


async def test_async_cluster_answers_awaitably(pool: Pool) -> None:
    """On its own loop it must not block."""
    async with claim(1, pool=pool, asynchronous=True) as cluster:
        explained = await cluster.explain()  # type: ignore[misc]
        assert explained.claim == cluster.claim_id


async def test_unrequested_claim_has_nothing_to_tell(pool: Pool) -> None:
    """An asynchronous one is requested when it is awaited."""
    cluster = claim(1, pool=pool, asynchronous=True)
    with pytest.raises(Conflict, match="not been requested"):
        cluster.explain()
    await cluster.close()


def test_claim_is_scaled_and_released_by_name(pool: Pool, view_of: View) -> None:
    """Without its cluster at hand; one number lowers the least it keeps as well."""
    with claim(2, name="by name", pool=pool) as cluster:
        bounds = asking.scale("by name", (1, 3), pool=pool).workers
        assert (bounds.min, bounds.max) == (1, 3)
        assert asking.scale("by name", 4, pool=pool).workers.min == 1
        assert asking.scale("by name", 0, pool=pool).workers.min == 0
        assert asking.release("by name", pool=pool).phase in (Phase.ENDING, Phase.ENDED)
        assert view_of(cluster.claim_id).phase in (Phase.ENDING, Phase.ENDED)


@pytest.mark.parametrize("gpus", [-1, (2, 1), 0.5, "2"])
def test_nonsense_is_no_size(pool: Pool, gpus: object) -> None:
    """Refused before anything is asked."""
    with pytest.raises(BadRequest):
        asking.scale("any", gpus, pool=pool)  # type: ignore[arg-type]


def test_claim_that_waits_can_be_attached_to(pool: Pool) -> None:
    """Its scheduler is reached once it runs."""
    held = claim(8, pool=pool)
    waits = claim(1, name="waits", pool=pool, wait=False)
    held.close()
    with attach("waits", pool=pool) as again, Client(again, set_as_default=False) as client:
        assert client.submit(sum, [1, 2]).result(timeout=30) == 3
    waits.close()


def test_hibernated_claim_can_be_attached_to(pool: Pool, view_of: View) -> None:
    """Its scheduler is there, and a task that is submitted wakes it."""
    with claim(1, name="asleep", pool=pool) as first:
        first.hibernate()
        eventually(lambda: view_of(first.claim_id).phase is Phase.HIBERNATED, _WITHIN_S)
        with attach("asleep", pool=pool) as again, Client(again, set_as_default=False) as client:
            assert view_of(first.claim_id).phase is Phase.HIBERNATED
            assert len(again.scheduler_info["workers"]) == 0
            assert client.submit(sum, [1, 2]).result(timeout=30) == 3
            again.wait_for_workers(1)
            eventually(lambda: len(first.scheduler_info["workers"]) == 1, _WITHIN_S)


def test_attaching_to_one_of_several_needs_a_name(pool: Pool) -> None:
    """The error lists them."""
    with (
        claim(1, name="left", pool=pool),
        claim(1, name="right", pool=pool),
        pytest.raises(BadRequest, match=r"You hold 2 claims: (left.*right|right.*left)"),
    ):
        attach(pool=pool)


def test_nobody_attaches_to_nothing(pool: Pool) -> None:
    """It says how to get a claim."""
    with pytest.raises(NotFound, match="You hold no claim"):
        attach(pool=pool)


def test_claim_says_what_it_is_used_from() -> None:
    """Versions that have to agree, without importing anything for it."""
    sent = body_of(1, {}, used_from()).used_from
    assert sent is not None
    assert {"python", "dask", "distributed"} <= sent.versions.keys()
    assert sent.interpreter


def test_kernels_own_environment_can_be_claimed(pool: Pool) -> None:
    """Its workers run this very Python."""
    with claim(1, pool=pool, environment="kernel") as cluster, Client(cluster) as client:
        (executable,) = client.run(lambda: __import__("sys").executable).values()
        assert executable == used_from().interpreter


def test_parts_of_a_device_are_shared_by_own_claims(pool: Pool, view_of: View) -> None:
    """Each has its worker, both are on one device, and its other half is known to be held."""
    with claim(0.5, pool=pool) as one, claim(0.5, pool=pool) as other:
        leases = [lease for each in (one, other) for lease in view_of(each.claim_id).leases]
        [device] = {lease.device for lease in leases}
        assert [lease.share for lease in leases] == [0.5, 0.5]
        for cluster in (one, other):
            with Client(cluster, set_as_default=False) as client:
                assert client.submit(sum, [1, 2]).result(timeout=30) == 3
        every = pool.background.run(lambda _say: pool.client.devices())
        [seen] = [one for one in every if one.uuid == device]
        assert (seen.left, len(seen.holders)) == (0, 2)


def test_worker_may_have_several_devices(pool: Pool, view_of: View) -> None:
    """One worker, and nobody else gets its devices."""
    with claim(4, pool=pool, gpus_per_worker=2) as cluster:
        leases = view_of(cluster.claim_id).leases
        assert sorted(len(lease.devices) for lease in leases) == [2, 2]
        assert len({uuid for lease in leases for uuid in lease.devices}) == 4


def test_environments_are_listed(pool: Pool) -> None:
    """With the one that a claim gets by default."""
    assert [view.name for view in asking.environments(pool=pool) if view.is_default]


def test_callback_is_taken_at_the_claim(pool: Pool) -> None:
    """As a term, or later by the cluster's method."""
    with claim(1, pool=pool, on_reclaim=print) as cluster:
        cluster.on_reclaim(repr)
        assert cluster._reclaiming._callbacks == [print, repr]
