"""A claim that ends by itself: its user is told why, and nothing hangs."""

import asyncio
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import dask
import pytest
from distributed import Client, LocalCluster, Status, wait
from waiting import eventually

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import attach, claim
from jupyter_gpupool.notebook.clients import fail_results
from jupyter_gpupool.notebook.cluster import ClaimCluster
from jupyter_gpupool.pool.errors import ClaimLost, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.e2e
WITHIN_S = 10.0


def test_killed_scheduler_is_a_lost_claim_within_seconds(
    pool: Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Calls raise ClaimLost with the reason, which is also printed once."""
    cluster = claim(1, name="doomed", pool=pool)
    client = Client(cluster)
    os.kill(client.run_on_scheduler(os.getpid), signal.SIGKILL)
    eventually(lambda: cluster.status == Status.closed, WITHIN_S)
    with pytest.raises(ClaimLost, match="scheduler"):
        cluster.scale(2)
    with pytest.raises(ClaimLost):
        Client(cluster)
    told = [line for line in capsys.readouterr().err.splitlines() if "doomed has ended" in line]
    assert len(told) == 1
    client.close()


def test_client_made_while_its_scheduler_dies_raises_the_reason(pool: Pool) -> None:
    """Whichever is first, the broken connection or the word of the pool."""
    cluster, scheduler = _claim_and_its_scheduler(pool)
    os.kill(scheduler, signal.SIGKILL)
    with pytest.raises(ClaimLost, match="scheduler"):
        Client(cluster)
    eventually(lambda: cluster.status == Status.closed, WITHIN_S)


async def test_awaited_client_of_a_dying_scheduler_raises_the_reason(pool: Pool) -> None:
    """On the caller's own loop as well."""
    async with claim(1, pool=pool, quiet=True, asynchronous=True) as cluster:
        async with Client(cluster, asynchronous=True) as client:
            scheduler = await client.run_on_scheduler(os.getpid)
        os.kill(scheduler, signal.SIGKILL)
        with pytest.raises(ClaimLost, match="scheduler"):
            await Client(cluster, asynchronous=True)


def test_attaching_to_a_claim_whose_scheduler_dies_raises_the_reason(pool: Pool) -> None:
    """Nobody has followed it until then."""
    cluster, scheduler = _claim_and_its_scheduler(pool)
    os.kill(scheduler, signal.SIGKILL)
    with pytest.raises(ClaimLost, match="scheduler"):
        attach(cluster.claim_id, pool=pool, quiet=True)
    eventually(lambda: cluster.status == Status.closed, WITHIN_S)


def test_client_of_a_scheduler_that_does_not_answer_says_so(pool: Pool) -> None:
    """In one sentence, once it is clear that its claim has not ended."""
    cluster, scheduler = _claim_and_its_scheduler(pool)
    os.kill(scheduler, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match="its scheduler cannot be reached"):
            Client(cluster, timeout=1)
        assert cluster.status == Status.running
    finally:
        os.kill(scheduler, signal.SIGCONT)
    cluster.close()


def test_attaching_to_a_scheduler_that_does_not_answer_says_so(pool: Pool) -> None:
    """And leaves the claim to its others."""
    cluster, scheduler = _claim_and_its_scheduler(pool)
    os.kill(scheduler, signal.SIGSTOP)
    try:
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            pytest.raises(Unavailable, match="its scheduler cannot be reached"),
        ):
            attach(cluster.claim_id, pool=pool, quiet=True)
    finally:
        os.kill(scheduler, signal.SIGCONT)
    with Client(cluster) as client:
        assert client.submit(sum, [1, 2]).result(timeout=WITHIN_S) == 3
    cluster.close()


@pytest.mark.parametrize("ask", ["result", "gather", "run", "scatter", "who_has", "publish"])
def test_question_under_way_when_the_scheduler_dies_raises_the_reason(pool: Pool, ask: str) -> None:
    """Whatever of a client it is that asks the scheduler."""
    cluster = claim(1, pool=pool, quiet=True)
    client = Client(cluster)
    done = client.submit(sum, [1, 2])
    wait(done, timeout=WITHIN_S)
    scheduler = client.run_on_scheduler(os.getpid)
    asks: dict[str, Callable[[], object]] = {
        "result": done.result,
        "gather": lambda: client.gather([done]),
        "run": lambda: client.run(os.getpid),
        "scatter": lambda: client.scatter([1]),
        "who_has": client.who_has,
        "publish": lambda: client.publish_dataset(three=done),
    }
    os.kill(scheduler, signal.SIGSTOP)
    strike = threading.Timer(0.3, os.kill, (scheduler, signal.SIGKILL))
    strike.start()
    with pytest.raises(ClaimLost, match="scheduler"):
        asks[ask]()
    strike.join()
    client.close()


def test_connection_that_breaks_alone_costs_no_new_task(pool: Pool) -> None:
    """The scheduler is there and the claim goes on: nobody waits for an end."""
    with claim(1, pool=pool, quiet=True) as cluster, Client(cluster) as client:
        broken = client.scheduler_comm
        client.sync(_abort, broken)
        eventually(lambda: client.scheduler_comm not in {None, broken}, 3, "it is connected again")
        assert client.submit(sum, [3, 4]).result(timeout=WITHIN_S) == 7


async def _abort(connection: Any) -> None:
    connection.comm.abort()


def _claim_and_its_scheduler(pool: Pool) -> tuple[ClaimCluster, int]:
    cluster = claim(1, pool=pool, quiet=True)
    with Client(cluster) as client:
        return cluster, client.run_on_scheduler(os.getpid)


def test_result_that_was_waited_for_raises_the_reason(pool: Pool) -> None:
    """A claim released behind one's back makes no `result()` hang."""
    cluster = claim(1, pool=pool, quiet=True)
    with Client(cluster) as client:
        future = client.submit(time.sleep, 600)
        pool.background.run(lambda _say: pool.client.release(cluster.claim_id, "by an admin"))
        with pytest.raises(ClaimLost, match=r"has ended: .*by an admin"):
            future.result(timeout=WITHIN_S)
    eventually(lambda: cluster.status == Status.closed, WITHIN_S)
    assert "lost" in repr(cluster)
    assert "by an admin" in cluster._repr_html_()


def test_results_of_a_killed_scheduler_raise_the_reason(pool: Pool) -> None:
    """The one waited for while the connection breaks, and the one not fetched yet."""
    cluster = claim(1, pool=pool, quiet=True)
    client = Client(cluster)
    ready, waited_for = client.submit(sum, [1, 2]), client.submit(time.sleep, 600)
    wait(ready, timeout=WITHIN_S)
    os.kill(client.run_on_scheduler(os.getpid), signal.SIGKILL)
    for future in (waited_for, ready):
        with pytest.raises(ClaimLost, match="scheduler"):
            future.result(timeout=WITHIN_S)
    client.close()


async def test_awaited_result_raises_the_reason(pool: Pool) -> None:
    """On the caller's own loop as well."""
    async with (
        claim(1, pool=pool, quiet=True, asynchronous=True) as cluster,
        Client(cluster, asynchronous=True) as client,
    ):
        future = client.submit(time.sleep, 600)
        os.kill(await client.run_on_scheduler(os.getpid), signal.SIGKILL)
        with pytest.raises(ClaimLost, match="scheduler"):
            async with asyncio.timeout(WITHIN_S):
                await future.result()
    assert cluster.status == Status.closed


def test_task_after_the_loss_raises_the_reason(pool: Pool) -> None:
    """In the moment in which the client is still closing, and once it is closed."""
    cluster = claim(1, pool=pool, quiet=True)
    client = Client(cluster)
    future = client.submit(time.sleep, 600)
    os.kill(client.run_on_scheduler(os.getpid), signal.SIGKILL)
    with pytest.raises(ClaimLost):
        future.result(timeout=WITHIN_S)
    with pytest.raises(ClaimLost, match="scheduler"):
        client.submit(sum, [1, 2]).result(timeout=WITHIN_S)
    eventually(lambda: cluster.status == Status.closed, WITHIN_S)
    with pytest.raises(ClaimLost, match="scheduler"):
        client.submit(sum, [3, 4]).result(timeout=WITHIN_S)
    client.close()


def test_client_of_a_lost_claim_takes_no_task() -> None:
    """From the first moment on, while its connection still stands."""
    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster, Client(cluster) as client:
        before = client.submit(sum, [1, 2])
        client.sync(_fail_results, cluster)
        with pytest.raises(ClaimLost, match="gone"):
            client.submit(sum, [3, 4])
        with pytest.raises(ClaimLost, match="gone"):
            before.result(timeout=WITHIN_S)


async def _fail_results(cluster: LocalCluster) -> None:
    fail_results(cluster, ClaimLost("It is gone."))


def test_other_dask_clients_are_left_alone() -> None:
    """Only those of a claim wait for its reason."""
    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster, Client(cluster) as client:
        assert "_reconnect" not in vars(client)


def test_lost_claim_closes_without_a_word(pool: Pool) -> None:
    """What is over need not be given back."""
    cluster = claim(1, pool=pool, quiet=True)
    pool.background.run(lambda _say: pool.client.release(cluster.claim_id))
    eventually(lambda: cluster.status == Status.closed, WITHIN_S)
    cluster.close()
    assert cluster.status == Status.closed


def test_close_without_a_manager_is_bounded_and_says_so(
    another_pool: tuple[EmbeddedPool, Pool],
) -> None:
    """The claim may still run, and the error tells how to end it later."""
    embedded, pool = another_pool
    cluster = claim(1, pool=pool)
    assert embedded.address is not None
    assert embedded.address.manager_pid is not None
    os.kill(embedded.address.manager_pid, signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(Unavailable, match=f"release {cluster.claim_id}"):
        cluster.close()
    assert time.monotonic() - start < WITHIN_S
    assert cluster.status == Status.closed
    embedded.start()  # the next manager ends what this one left
