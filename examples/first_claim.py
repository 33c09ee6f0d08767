"""Claim two GPUs, compute on them, give them back.

On a machine without a GPU the pool simulates some, and the same code runs.
"""

# ruff: noqa: INP001, T201
import dask.array as da
from distributed import Client

import jupyter_gpupool as gpupool

if __name__ == "__main__":
    with gpupool.claim(gpus=2) as cluster, Client(cluster) as client:
        x = da.random.random((4_000, 4_000), chunks=1_000)
        print("mean of a random matrix:", round(float((x @ x.T).mean().compute()) / 4_000, 2))
        print("workers:", len(client.scheduler_info()["workers"]))
