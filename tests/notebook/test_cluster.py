"""A claim is an ordinary Dask cluster, on real processes."""

import os
import threading
from collections.abc import Callable

import pytest
from distributed import Client

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook import opening
from jupyter_gpupool.notebook.asking import claims
from jupyter_gpupool.notebook.claim import attach, claim
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.errors import BadRequest, Conflict, NotFound
from jupyter_gpupool.protocol.api import ClaimView

pytestmark = pytest.mark.e2e
View = Callable[[str], ClaimView]


def test_claim_computes(pool: Pool) -> None:
    """Two devices, two workers, a result."""
    with claim(2, pool=pool) as cluster, Client(cluster) as client:
        assert client.submit(sum, [1, 2, 3]).result(timeout=30) == 6
        assert len(client.run(os.getpid)) == 2


def test_sets_of_workers_agree_once_all_are_there(pool: Pool) -> None:
    """What is planned is requested, and what is requested is observed."""
    with claim(2, pool=pool) as cluster:
        cluster.wait_for_workers(2)
        assert cluster.plan == cluster.requested == cluster.observed


def test_views_name_the_claim(pool: Pool) -> None:
    """In a terminal and in a notebook."""
    with claim(1, name="my claim", pool=pool) as cluster:
        assert "my claim" in repr(cluster)
        assert "my claim" in cluster._repr_html_()
        assert cluster.dashboard_link.startswith("https://")


def test_new_claim_shows_the_workers_that_it_has(pool: Pool) -> None:
    """Though what told that it runs said nothing of them."""
    with claim(1, pool=pool) as cluster:
        assert "1 worker ·" in cluster._repr_html_()


def test_closed_claim_is_given_back(pool: Pool, view_of: View) -> None:
    """And closing again does nothing."""
    cluster = claim(1, pool=pool)
    cluster.close()
    cluster.close()
    assert view_of(cluster.claim_id).phase in (Phase.ENDING, Phase.ENDED)


def test_closed_claim_says_so(pool: Pool) -> None:
    """One sentence instead of a hang."""
    with claim(1, pool=pool) as cluster:
        pass
    with pytest.raises(Conflict, match="has been closed"):
        cluster.scale(2)


def test_scaling_goes_both_ways(pool: Pool) -> None:
    """Up to what is asked for, and down again with the results kept."""
    with claim(1, pool=pool) as cluster, Client(cluster) as client:
        cluster.scale(3)
        cluster.wait_for_workers(3, timeout=30)
        futures = client.map(lambda number: number + 1, range(6))
        cluster.scale(1)
        assert client.gather(futures) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("count", [-1, 1.5, "2", None, True])
def test_nonsense_is_no_number_of_workers(pool: Pool, count: object) -> None:
    """Refused in a sentence."""
    with claim(1, pool=pool) as cluster, pytest.raises(BadRequest, match="cannot have"):
        cluster.scale(count)  # type: ignore[arg-type]


def test_adapting_is_the_managers(pool: Pool, view_of: View) -> None:
    """The bounds are sent, and nothing else is accepted."""
    with claim(1, pool=pool) as cluster:
        cluster.adapt(minimum=0, maximum=2)
        bounds = view_of(cluster.claim_id).workers
        assert (bounds.min, bounds.max) == (0, 2)
        with pytest.raises(BadRequest, match="interval"):
            cluster.adapt(interval="1s")


def test_threads_claim_side_by_side(pool: Pool) -> None:
    """Each gets its own."""
    got: list[int] = []

    def work(number: int) -> None:
        with claim(1, pool=pool, quiet=True) as cluster, Client(cluster, set_as_default=False) as c:
            got.append(c.submit(abs, -number).result(timeout=30))

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [1, 2]


async def test_claim_can_be_awaited(pool: Pool) -> None:
    """On the caller's own loop."""
    async with (
        claim(1, pool=pool, asynchronous=True) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        assert await client.submit(sum, [1, 2]) == 3


async def test_blocking_claim_works_under_a_running_loop(pool: Pool) -> None:
    """As in a notebook's cell."""
    with claim(1, pool=pool) as cluster, Client(cluster) as client:
        assert client.submit(sum, [1, 2]).result(timeout=30) == 3


def test_claim_need_not_be_waited_for(pool: Pool) -> None:
    """`Client` then waits in its place."""
    cluster = claim(1, pool=pool, wait=False)
    assert cluster.claim_id
    with cluster, Client(cluster) as client:
        assert client.submit(sum, [1, 2]).result(timeout=30) == 3


def test_attached_claim_outlives_the_attachment(pool: Pool, view_of: View) -> None:
    """By id or by name."""
    with claim(1, name="held", pool=pool) as cluster:
        with attach("held", pool=pool) as again, Client(again) as client:
            assert client.submit(sum, [1, 2]).result(timeout=30) == 3
        assert view_of(cluster.claim_id).phase is Phase.RUNNING


def test_unknown_claim_cannot_be_attached(pool: Pool) -> None:
    """It says what was not found."""
    with pytest.raises(NotFound, match="no-such-claim"):
        attach("no-such-claim", pool=pool)


async def test_pool_is_found_off_the_callers_loop(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starting one may take a second, in which a kernel must answer."""
    threads: list[int] = []

    def find() -> Pool:
        threads.append(threading.get_ident())
        return pool

    monkeypatch.setattr(opening, "current_pool", find)
    async with (
        claim(1, asynchronous=True, name="found later") as cluster,
        attach("found later", asynchronous=True) as again,
    ):
        assert again.claim_id == cluster.claim_id
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_claims_are_listed(pool: Pool) -> None:
    """With the one that was just made."""
    with claim(1, pool=pool) as cluster:
        assert cluster.claim_id in {view.id for view in claims(pool=pool)}
