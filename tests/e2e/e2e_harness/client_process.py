"""A user's script in a process of its own, told line by line what to do; run by `user.py`.

Uses only what a user would: `jupyter_gpupool.claim` and `distributed.Client`. It is a process so
that it can be killed and stopped like any other.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import cloudpickle
import dask.array as da
import littering
from distributed import Client, wait

import jupyter_gpupool as gpupool


def slow_square(number: int, seconds: float) -> int:
    """A task that takes its time."""
    time.sleep(seconds)
    return number * number


def some_bytes(number: int, size_bytes: int) -> bytes:
    """Bytes that differ each time they are made, so that what was made again is found out."""
    return bytes([number % 256]) + os.urandom(size_bytes)


# Workers have no such file: what is in it goes along.
cloudpickle.register_pickle_by_value(littering)


class Counter:
    """Counts, where it lives."""

    def __init__(self) -> None:
        self._count = 0

    def count(self) -> int:
        """One more."""
        self._count += 1
        return self._count


def leave_a_daemon_behind() -> int:
    """Start a process that has its own session and no parent of ours; give its pid."""
    script = "import os, time\nif os.fork() == 0:\n os.setsid()\n print(os.getpid(), flush=True)\n"
    script += " os.close(1)\n time.sleep(600)\n"
    out = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
    return int(out.stdout)


def fill_memory(size_bytes: int) -> int:
    """Hold this much memory for a while."""
    held = bytearray(os.urandom(4096)) * (size_bytes // 4096)
    time.sleep(30)
    return len(held)


def end_the_worker(code: int) -> None:
    """End the worker's process at once."""
    os._exit(code)


class User:
    """What this process holds: claims, Dask clients and futures, by claim id."""

    def __init__(self) -> None:
        self.clusters: dict[str, Any] = {}
        self.clients: dict[str, Any] = {}
        self.futures: dict[str, list[Any]] = {}
        self.kept: dict[str, list[Any]] = {}
        self.told: list[str] = []

    def claim(
        self, gpus: float | Sequence[int], *, expect_reclaim: bool = False, **terms: Any
    ) -> str:
        """Claim, connect, and give the claim's id; `reclaims` tells what was said of it."""
        asked = gpus if isinstance(gpus, int | float) else tuple(gpus)
        cluster = gpupool.claim(gpus=asked, **terms)
        if expect_reclaim:
            cluster.on_reclaim(lambda reclaim: self.told.append(reclaim.rule))
        return self._hold(cluster)

    def reclaims(self) -> list[str]:
        """The rules by which something was to be taken from its claims."""
        return self.told

    def attach(self, claim_id: str) -> str:
        """Connect to a claim that is there already."""
        return self._hold(gpupool.attach(claim_id))

    def _hold(self, cluster: Any) -> str:
        claim_id = str(cluster.claim_id)
        self.clusters[claim_id] = cluster
        self.clients[claim_id] = Client(cluster)
        return claim_id

    def compute(self, claim_id: str) -> int:
        """The sum of the squares of 0 to 99, computed on the claim."""
        numbers = da.arange(100, chunks=10)
        return int(self.clients[claim_id].compute((numbers**2).sum()).result(timeout=30))

    def prefix(self, claim_id: str) -> str:
        """The folder of the environment that the worker runs in."""
        return str(self.clients[claim_id].submit(getattr, sys, "prefix").result(timeout=30))

    def visible(self, claim_id: str) -> str:
        """What CUDA sees in the claim's worker."""
        found = self.clients[claim_id].submit(os.getenv, "CUDA_VISIBLE_DEVICES", pure=False)
        return str(found.result(timeout=30))

    def spills_at(self, claim_id: str) -> int:
        """How much its worker keeps on its device before it spills."""
        found = self.clients[claim_id].run(
            lambda dask_worker: dask_worker.data.device_buffer.fast.n
        )
        return int(next(iter(found.values())))

    def submit(self, claim_id: str, tasks: int, seconds: float) -> int:
        """Start tasks and come back at once."""
        client = self.clients[claim_id]
        numbers = range(tasks)
        self.futures[claim_id] = client.map(slow_square, numbers, seconds=seconds, pure=False)
        return tasks

    def gather(self, claim_id: str, timeout: float) -> int:
        """The sum of what `submit` started."""
        futures = self.futures.pop(claim_id)
        wait(futures, timeout=timeout)
        return int(sum(self.clients[claim_id].gather(futures)))

    def keep(self, claim_id: str, tasks: int, size_bytes: int) -> str:
        """Have results of some size computed and wait for them; a digest of all."""
        client = self.clients[claim_id]
        numbers = range(tasks)
        self.kept[claim_id] = client.map(some_bytes, numbers, size_bytes=size_bytes, pure=False)
        wait(self.kept[claim_id], timeout=60)
        return self.digest(claim_id)

    def digest(self, claim_id: str, timeout: float = 60) -> str:
        """A digest of the results that `keep` had computed, as they are now."""
        found = hashlib.sha256()
        for future in self.kept[claim_id]:
            found.update(future.result(timeout=timeout))
        return found.hexdigest()

    def actor(self, claim_id: str) -> int:
        """Have something live on a worker that cannot move."""
        future = self.clients[claim_id].submit(Counter, actor=True)
        self.kept[claim_id] = [future]
        return int(future.result(timeout=30).count().result(timeout=30))

    def litter(self, claim_id: str, kind: str, workers: int = 1) -> list[Any]:
        """Have each worker leave files behind (see `littering`); what they say of that."""
        there = self.clients[claim_id].run(littering.KINDS[kind])
        assert len(there) == workers
        return list(there.values())

    def daemon(self, claim_id: str) -> int:
        """The pid of a process that a task left behind."""
        found = self.clients[claim_id].submit(leave_a_daemon_behind, pure=False)
        return int(found.result(timeout=30))

    def fill(self, claim_id: str, size_bytes: int) -> str:
        """Fill the worker's memory; how that ended."""
        future = self.clients[claim_id].submit(fill_memory, size_bytes, pure=False, retries=0)
        wait([future], timeout=60)
        return str(future.status)

    def end_worker(self, claim_id: str, code: int) -> str:
        """Make a task end its worker."""
        self.futures[claim_id] = [self.clients[claim_id].submit(end_the_worker, code, pure=False)]
        return "submitted"

    def restart(self, claim_id: str) -> int:
        """Restart all workers; how many there are then."""
        client = self.clients[claim_id]
        client.restart(timeout=30)
        return len(client.scheduler_info(n_workers=-1)["workers"])

    def scale(self, claim_id: str, workers: int) -> None:
        """Another number of workers."""
        self.clusters[claim_id].scale(workers)

    def close(self, claim_id: str) -> None:
        """Give the claim back."""
        self.clients.pop(claim_id).close()
        self.clusters.pop(claim_id).close()

    def forget(self, claim_id: str) -> None:
        """Let go of a claim that has ended, whatever state its connection is in."""
        client, cluster = self.clients.pop(claim_id, None), self.clusters.pop(claim_id, None)
        self.futures.pop(claim_id, None)
        for held in (client, cluster):
            with contextlib.suppress(Exception):
                held.close()


def main() -> None:
    """Obey each line; one line back for each."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # What libraries print must not be taken for an answer.
    user = User()
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = {"value": getattr(user, order.pop("do"))(**order)}
        except BaseException as error:  # noqa: BLE001 - every failure is an answer
            answer = {"error": type(error).__name__, "message": str(error)}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
