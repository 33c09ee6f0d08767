"""The main job, end to end on a private embedded pool: called by `demo`.

Every result is checked against what NumPy or pandas gives. Whatever happens, Ctrl-C included, the
pool is stopped and its processes are looked for.
"""

# mypy: allow-untyped-calls
# distributed types only some of what it offers.

import contextlib
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import Client

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim
from jupyter_gpupool.notebook.cluster import ClaimCluster
from jupyter_gpupool.pool.errors import PoolError, Unavailable
from jupyter_gpupool.pool.units import plural

from .demo_wrong import Wrong
from .process_tree import Seen, alive, kill, tree

if TYPE_CHECKING:
    from jupyter_gpupool.client.events import Watch

_WORKERS = 2
_MORE_WORKERS = 3
_HOST_WITHIN_S = 30.0
_GONE_WITHIN_S = 5.0
_SIMULATED = (
    "of dask-cuda, DeviceHostFile's spilling and PreImport run, while CPU affinity, RMM, cuDF and"
    " the CUDA context need a real GPU"
)
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that was done, how long it took, and what came out."""

    what: str
    seconds: float
    result: str = ""


@dataclass(slots=True)
class DemoReport:
    """What happened, in order."""

    notice: str = ""
    simulated: bool = False
    processes: int = 0
    total_s: float = 0
    steps: list[Step] = field(default_factory=list)

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[list[str]]:
        """Time one step; what is put into the list is its result."""
        result: list[str] = []
        start = time.perf_counter()
        yield result
        seconds = time.perf_counter() - start
        self.steps.append(Step(what=what, seconds=seconds, result=" ".join(result)))

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "notice": self.notice,
            "simulated": self.simulated,
            "processes_started": self.processes,
            "processes_left": 0,
            "total_s": round(self.total_s, 4),
            "steps": [
                {"what": step.what, "seconds": round(step.seconds, 4), "result": step.result}
                for step in self.steps
            ],
        }


def run_demo(tell: Tell) -> DemoReport:
    """Run it all.

    Args:
        tell: Told, in one line, what kind of devices there are.

    Raises:
        PoolError: If a step fails, a result is wrong, or something is left.
    """
    report = DemoReport()
    start = time.perf_counter()
    started: set[Seen] = set()
    # A polite end is an interrupt like Ctrl-C: both clean up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="gpupool-demo-") as folder:
        try:
            with _private_pool(Path(folder), report) as pool:
                _tell_devices(pool, report, tell)
                # Imported only now: the pool's agent warms its own Python meanwhile.
                import_module("jupyter_gpupool.cli.demo_array")
                import_module("jupyter_gpupool.cli.demo_dataframe")
                _work(pool, report, started)
        finally:
            _check_nothing_left(started)
    report.processes = len(started)
    report.total_s = time.perf_counter() - start
    return report


@contextlib.contextmanager
def _private_pool(folder: Path, report: DemoReport) -> Iterator[Pool]:
    embedded = EmbeddedPool(folder)
    with report.step("pool up"):
        pool = Pool(embedded.start())
        try:
            _wait_for_devices(pool)
        except BaseException:
            _stop(embedded, pool)
            raise
    try:
        yield pool
    finally:
        with report.step("pool down"):
            _stop(embedded, pool)


def _stop(embedded: EmbeddedPool, pool: Pool) -> None:
    # Once it is being stopped, one more Ctrl-C must not leave half of it behind.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pool.background.run(lambda _say: pool.close())
        embedded.stop()
    finally:
        signal.signal(signal.SIGINT, before)


def _wait_for_devices(pool: Pool) -> None:
    async def wait() -> None:
        view = await pool.client.status()
        async with pool.events.watch(after=view.seq) as watch:
            await _until_devices(pool, watch)

    pool.background.run(lambda _say: wait())


async def _until_devices(pool: Pool, watch: "Watch") -> None:
    deadline = time.monotonic() + _HOST_WITHIN_S
    while not (await pool.client.status()).devices:
        if time.monotonic() > deadline:
            raise Unavailable("The demo's agent did not join its pool.")
        await watch.next(within_s=1.0)


def _tell_devices(pool: Pool, report: DemoReport, tell: Tell) -> None:
    status = pool.background.run(lambda _say: pool.client.status())
    hosts = pool.background.run(lambda _say: pool.client.hosts())
    report.simulated = status.simulated
    said_by_agent = next((host.problem for host in hosts if host.problem), "")
    report.notice = said_by_agent or _notice(status.devices, simulated=status.simulated)
    tell(report.notice)


def _notice(devices: int, *, simulated: bool) -> str:
    if simulated:
        return f"No GPU here: {plural(devices, 'device')} are simulated; {_SIMULATED}."
    return f"{plural(devices, 'real GPU')}, through NVML: all of dask-cuda runs."


def _work(pool: Pool, report: DemoReport, started: set[Seen]) -> None:
    devices = pool.background.run(lambda _say: pool.client.status()).devices
    workers, more = min(_WORKERS, devices), min(_MORE_WORKERS, devices)
    with report.step("first claim, cold") as result, claim(1, name="first", pool=pool):
        result.append("the pool's Python is loaded")
    with report.step("claim to running") as result:
        cluster = claim(workers, name="demo", pool=pool)
        result.append(plural(workers, "worker"))
    with cluster:
        _compute(cluster, report)
        with report.step(f"scale to {more}") as result:
            cluster.scale(more)
            cluster.wait_for_workers(more)
            result.append(plural(len(cluster.observed), "worker"))
        assert pool.address.manager_pid is not None, "an embedded manager tells its process"
        started |= tree(pool.address.manager_pid)
        with report.step("release") as result:
            cluster.close()
            assert cluster.view is not None, "it was claimed"
            result.append(cluster.view.phase)


def _compute(cluster: ClaimCluster, report: DemoReport) -> None:
    from .demo_array import array_result  # noqa: PLC0415 - see above
    from .demo_dataframe import dataframe_result  # noqa: PLC0415 - see above

    with Client(cluster) as client:
        with report.step("first result") as result:
            result.append(f"sum = {client.submit(sum, range(10)).result()}")
        try:
            with report.step("Dask array") as result:
                result.append(array_result())
            with report.step("Dask dataframe") as result:
                result.append(dataframe_result())
        except Wrong as error:
            raise PoolError(f"A result is wrong: {error}.") from error


def _check_nothing_left(started: set[Seen]) -> None:
    deadline = time.monotonic() + _GONE_WITHIN_S
    while left := alive(started):
        if time.monotonic() > deadline:
            kill(left)
            names = ", ".join(sorted(f"{seen.pid} ({seen.command})" for seen in left))
            raise PoolError(f"The demo left processes behind, killed now: {names}.")
        time.sleep(0.02)
