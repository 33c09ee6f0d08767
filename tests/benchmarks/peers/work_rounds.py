"""The same work through a claim or through LocalCUDACluster, in a process of its own, when asked.

Started twice by `overhead.py`: as `claim` it uses the pool of its environment, as `local` it
builds a LocalCUDACluster on the stub NVML. Each line on standard input names a kind of work; each
answer is one line of JSON with its seconds.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator

import dask.array as da
from distributed import Client

TASKS = 500


def tasks(client: Client) -> None:
    """Many tasks that do nothing: all that is left is Dask's own work."""
    futures = client.map(_same, range(TASKS), pure=False)
    assert sum(client.gather(futures)) == sum(range(TASKS))


def array(client: Client) -> None:
    """A reduction: work in each task, and small results that are combined."""
    spread = float(client.compute(_square(8000, 1000).std()).result())
    assert 0.28 < spread < 0.30


def transfers(client: Client) -> None:
    """An array and its transpose: half of all blocks go from worker to worker."""
    square = _square(4000, 500)
    mean = float(client.compute((square + square.T).mean()).result())
    assert 0.99 < mean < 1.01


KINDS = {"tasks": tasks, "array": array, "transfers": transfers}


@contextlib.contextmanager
def through(what: str, workers: int) -> Iterator[Client]:
    """A client of that many workers with one thread each."""
    if what == "claim":
        import jupyter_gpupool as gpupool  # noqa: PLC0415 - the other side must not pay for it

        with gpupool.claim(workers, quiet=True) as cluster, Client(cluster) as client:
            client.wait_for_workers(workers)
            yield client
    else:
        from dask_cuda import LocalCUDACluster  # noqa: PLC0415

        with (
            LocalCUDACluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            client.wait_for_workers(workers)
            yield client


def main() -> None:
    what, workers = sys.argv[1], int(sys.argv[2])
    with through(what, workers) as client:
        print(json.dumps({"ready": os.getpid()}), flush=True)
        for line in sys.stdin:
            started = time.perf_counter()
            KINDS[line.strip()](client)
            print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)


def _square(side: int, chunk: int) -> da.Array:
    return da.random.default_rng(7).random((side, side), chunks=(chunk, chunk))


def _same(x: int) -> int:
    return x


if __name__ == "__main__":
    main()
