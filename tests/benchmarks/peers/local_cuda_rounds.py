"""A cold LocalCUDACluster with one worker and its first result, once, in this fresh process.

Started by `local_cuda.py` for every round, with the stub NVML first on the library path. Prints
one line of JSON: the time from before the cluster is built, with all imports done, and the imports'
own.
"""

import json
import sys
import time


def main() -> None:
    imports_started = time.perf_counter()
    from dask_cuda import LocalCUDACluster  # noqa: PLC0415 - the import is what is timed
    from distributed import Client  # noqa: PLC0415

    started = time.perf_counter()
    workers = int(sys.argv[1])
    with (
        LocalCUDACluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        assert client.submit(lambda x: x + 1, 41, pure=False).result(timeout=60) == 42
        ready = time.perf_counter()
    answer = {"first_result_s": ready - started, "imports_s": started - imports_started}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
