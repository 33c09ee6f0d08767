"""A warm private pool to measure: on the stub devices where there is a C compiler, else simulated.

Used by the benchmarks that claim. It is the embedded pool as a notebook gets it, with a manager, an
agent and a zygote of its own.
"""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[1]))

from stubs.build import NoCompiler
from stubs.state import StubGpu, StubState

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim

_READY_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """The devices of a benchmark: what a process that shall see them needs."""

    what: str
    environment: dict[str, str]
    options: tuple[str, ...]


@contextlib.contextmanager
def devices(count: int) -> Iterator[Devices]:
    """Stub devices with UUIDs of their own, so that no other pool here shares them."""
    with tempfile.TemporaryDirectory(prefix="gpupool-stubs-") as folder:
        Path(folder).chmod(0o755)
        gpus = [StubGpu(uuid=f"GPU-{uuid4()}", bus=bus) for bus in range(1, count + 1)]
        try:
            environment = StubState(Path(folder)).with_gpus(*gpus).env()
        except NoCompiler as missing:
            options = (f"--simulated={count}",)
            yield Devices(what=f"simulated devices, for {missing}", environment={}, options=options)
        else:
            yield Devices(what="stub NVML and CUDA", environment=environment, options=())


@contextlib.contextmanager
def warm_pool(on: Devices) -> Iterator[Pool]:
    """Bring up an embedded pool and claim once, so that everything is loaded on both sides."""
    with (
        _environment(on.environment),
        tempfile.TemporaryDirectory(prefix="gpupool-bench-") as folder,
        EmbeddedPool(Path(folder), options=on.options) as address,
    ):
        assert address.address is not None, "a started pool has an address"
        pool = Pool(address.address)
        try:
            _warm_up(pool)
            yield pool
        finally:
            pool.background.run(lambda _say: pool.close())


def wait_until_free(pool: Pool) -> None:
    """Wait until every device is free again, so that no round pays for the one before.

    Raises:
        TimeoutError: If they are not.
    """
    deadline = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < deadline:
        status = pool.background.run(lambda _say: pool.client.status())
        if status.devices and status.free == status.devices:
            return
        time.sleep(0.05)
    raise TimeoutError("the pool's devices did not become free")


def _warm_up(pool: Pool) -> None:
    wait_until_free(pool)
    with (
        claim(1, pool=pool, quiet=True, timeout=_READY_WITHIN_S) as cluster,
        cluster.get_client() as client,
    ):
        assert client.submit(sum, [1, 2]).result() == 3
    wait_until_free(pool)


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
