"""A cluster that is closed: once, by whomever, also when somebody gives up over it."""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from distributed import Client, Status

from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import attach, claim
from jupyter_gpupool.notebook.closing import StillClosing
from jupyter_gpupool.pool.errors import PoolError

pytestmark = pytest.mark.e2e
WITHIN_S = 10.0


@pytest.mark.parametrize("release_on_close", [True, False])
def test_close_that_ran_out_of_time_is_finished_by_the_next(
    pool: Pool, *, release_on_close: bool
) -> None:
    """It says so in one sentence, and goes on meanwhile."""
    with claim(1, pool=pool, quiet=True) as holder:
        cluster = attach(holder.claim_id, pool=pool, quiet=True, release_on_close=release_on_close)
        client = Client(cluster)
        with pytest.raises(StillClosing, match="did not close within"):
            cluster.close(timeout=0.0001)
        cluster.close()
        assert (cluster.status, client.status) == (Status.closed, "closed")


def test_threads_that_close_at_once_all_come_back(pool: Pool) -> None:
    """One of them does it, the others wait for that."""
    cluster = claim(1, pool=pool, quiet=True)
    client = Client(cluster)
    with ThreadPoolExecutor(4) as threads:
        closed = [threads.submit(cluster.close) for _ in range(4)]
    assert [one.result(timeout=WITHIN_S) for one in closed] == [None] * 4
    assert client.status == "closed"


def test_fork_of_its_process_closes_no_cluster(pool: Pool) -> None:
    """Its threads are not there; whose claim it is, it is told."""
    with claim(1, pool=pool, quiet=True) as cluster:
        read, write = os.pipe()
        with warnings.catch_warnings():
            # From Python 3.12 on it warns of a fork beside threads, which is the case here.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                cluster.close()
            except PoolError as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        assert b"of which this is a fork" in os.read(read, 1000)
        os.close(read)
