"""The main checks on a machine with a real GPU: one script, offline, a readable report.

    python tests/gpu/run.py

Needs an NVIDIA driver and the package with `[all]` installed; uses CuPy or PyTorch if one is there.
It brings up a private pool, claims one device, and ends all that it started. Exit code 0: every
check passed or was left out with its reason.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from distributed import Client

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.client.pools import Pool
from jupyter_gpupool.notebook.claim import claim
from jupyter_gpupool.notebook.cluster import ClaimCluster
from jupyter_gpupool.pool.units import format_bytes
from jupyter_gpupool.protocol.api import ClaimView, DeviceView

_WITHIN_S = 60.0
_ALLOCATED_BYTES = 512 * 2**20


class LeftOut(Exception):
    """The check cannot run on this machine; the message says why."""


@dataclass(slots=True)
class Report:
    """What was checked, in order."""

    failed: int = 0
    lines: list[str] = field(default_factory=list)

    @contextmanager
    def check(self, promise: str) -> Iterator[list[str]]:
        """One promise; what is put into the list is shown beside it."""
        found: list[str] = []
        start = time.perf_counter()
        try:
            yield found
            verdict = "ok"
        except LeftOut as reason:
            verdict, found = "left out", [str(reason)]
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is a finding of this report
            verdict, found = "FAILED", [*found, f"{type(error).__name__}: {error}"]
            self.failed += 1
        took_ms = (time.perf_counter() - start) * 1e3
        print(f"{verdict:9} {took_ms:7.0f} ms  {promise}  {' '.join(found)}".rstrip(), flush=True)


def main() -> int:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="gpupool-gpu-") as folder:
        embedded = EmbeddedPool(Path(folder), options=("--simulated=0",))
        with report.check("a private pool comes up"):
            embedded.start()
        try:
            if embedded.address is not None:
                check_pool(Pool(embedded.address), report)
        finally:
            embedded.stop()
    print("All checks passed." if not report.failed else f"{report.failed} checks FAILED.")
    return 1 if report.failed else 0


def check_pool(pool: Pool, report: Report) -> None:
    """All checks on a pool that is up."""
    with report.check("the agent joins with real devices") as found:
        eventually(lambda: bool(devices_of(pool)), "no device has joined")
        found.append(f"{len(devices_of(pool))}")
    if not devices_of(pool):
        return
    with report.check("NVML's facts are the driver's own") as found:
        found.append(facts_agree(devices_of(pool)))
    with report.check("devices in use by others are not leased over") as found:
        found.append(foreign(devices_of(pool)))
    free = [one for one in devices_of(pool) if one.free]
    if not free:
        with report.check("a claim runs"):
            raise LeftOut("every device is in use by somebody else")
        return
    check_claim(pool, report)
    check_parts(pool, report)
    with report.check("a released device is free again, and its memory too") as found:
        eventually(lambda: all_free(pool, len(free)), "a device did not become free")
        found.append(used(devices_of(pool)))
    with report.check("a process outside any claim keeps its device back") as found:
        found.append(outsider_keeps_device(pool))


def check_claim(pool: Pool, report: Report) -> None:
    """The checks inside one claim."""
    with report.check("a claim of one device runs"):
        cluster = claim(1, pool=pool, quiet=True, timeout=_WITHIN_S)
    with cluster, Client(cluster) as client:
        check_worker(cluster, client, pool, report)


def check_worker(cluster: ClaimCluster, client: Client, pool: Pool, report: Report) -> None:
    """What the claim's worker sees and can do."""
    assert cluster.view is not None, "it runs"
    with report.check("its worker sees its own device alone, by UUID") as found:
        seen = client.submit(visible_devices, pure=False).result()
        leased = {one.uuid for one in devices_of(pool) if one.leased}
        assert {seen} == leased, f"sees {seen}, holds {leased}"
        found.append(seen)
    with report.check("CuPy or PyTorch computes on it") as found:
        library = client.submit(compute, pure=False).result(timeout=_WITHIN_S)
        if library is None:
            raise LeftOut("neither CuPy nor PyTorch is installed")
        found.append(library)
    with report.check("memory in use is seen by the pool") as found:
        if client.submit(allocate, _ALLOCATED_BYTES, pure=False).result(timeout=_WITHIN_S) is None:
            raise LeftOut("neither CuPy nor PyTorch is installed")
        eventually(
            lambda: any(
                (one.memory_used_bytes or 0) >= _ALLOCATED_BYTES
                for one in devices_of(pool)
                if one.leased
            ),
            "the pool's sample does not show it",
        )
        found.append(used([one for one in devices_of(pool) if one.leased]))


def check_parts(pool: Pool, report: Report) -> None:
    """Two claims with a part of one device each: they share it, and keep to their parts."""
    with report.check("two claims share a device") as found:
        parts = [claim(gpus, pool=pool, quiet=True, timeout=_WITHIN_S) for gpus in (0.5, 0.25)]
        leased = {lease.device for part in parts for lease in _view(part).leases}
        assert len(leased) == 1, f"they are on {leased}"
        found.append(leased.pop())
    modest, greedy = parts
    with modest, greedy, Client(modest) as neighbour, Client(greedy) as client:
        with report.check("a worker that takes more than its part is told, then ended") as found:
            found.append(over_its_part(pool, greedy, client))
        with report.check("its neighbour goes on"):
            assert neighbour.submit(visible_devices, pure=False).result(timeout=_WITHIN_S)


def over_its_part(pool: Pool, cluster: ClaimCluster, client: Client) -> str:
    """Allocate a third of the device with a quarter of it; what the claim was told at last."""
    [lease] = _view(cluster).leases
    [device] = [one for one in devices_of(pool) if one.uuid == lease.device]
    size_bytes = device.device.memory_bytes // 3
    if client.submit(allocate, size_bytes, pure=False).result(timeout=_WITHIN_S) is None:
        raise LeftOut("neither CuPy nor PyTorch is installed")
    eventually(lambda: "its part is" in _view(cluster).problem, "it is not told")
    eventually(lambda: any(x.restarts for x in _view(cluster).leases), "it is not ended")
    [lease] = _view(cluster).leases
    return lease.reason


def _view(cluster: ClaimCluster) -> ClaimView:
    assert cluster.view is not None, "it runs"
    return cluster.view


def visible_devices() -> str | None:
    """What the worker's CUDA will see."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def compute() -> str | None:
    """A matrix product on the device, in whatever library is there."""
    try:
        import cupy  # noqa: PLC0415 - runs on the worker
    except ImportError:
        pass
    else:
        ones = cupy.ones((2000, 2000))
        assert float((ones @ ones).sum()) == 2000.0**3
        return f"CuPy {cupy.__version__}"
    try:
        import torch  # noqa: PLC0415
    except ImportError:
        return None
    ones = torch.ones((2000, 2000), dtype=torch.float64, device="cuda")
    assert float((ones @ ones).sum()) == 2000.0**3
    return f"PyTorch {torch.__version__}"


def allocate(size_bytes: int) -> int | None:
    """Hold device memory for as long as the worker lives."""
    import builtins  # noqa: PLC0415 - runs on the worker

    try:
        import cupy  # noqa: PLC0415

        builtins.kept_by_gpupool_check = cupy.zeros(size_bytes, dtype="u1")  # type: ignore[attr-defined]
    except ImportError:
        try:
            import torch  # noqa: PLC0415
        except ImportError:
            return None
        kept = torch.zeros(size_bytes, dtype=torch.uint8, device="cuda")
        builtins.kept_by_gpupool_check = kept  # type: ignore[attr-defined]
    return size_bytes


def facts_agree(devices: list[DeviceView]) -> str:
    """UUID, model and memory as nvidia-smi says them."""
    fields = "uuid,name,memory.total"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except FileNotFoundError:
        raise LeftOut("there is no nvidia-smi to compare with") from None
    told = {line.split(", ")[0]: line.split(", ")[1:] for line in ran.stdout.splitlines()}
    for one in devices:
        if one.device.parent is not None:
            continue
        model, mib = told[one.uuid]
        assert one.device.model == model, f"{one.device.model} is not {model}"
        assert abs(one.device.memory_bytes - int(mib) * 2**20) < 2**30, one.device.memory_bytes
    return "; ".join(
        sorted({f"{one.device.model}, {format_bytes(one.device.memory_bytes)}" for one in devices})
    )


def foreign(devices: list[DeviceView]) -> str:
    """None of the devices with processes outside any claim counts as free."""
    busy = [one for one in devices if one.foreign]
    assert not any(one.free for one in busy), "a device in use counts as free"
    return f"{len(busy)} in use by others"


def outsider_keeps_device(pool: Pool) -> str:
    """Start a process that uses a device without a claim: seen, shown, and gone again."""
    script = (
        "import ctypes, sys; cuda = ctypes.CDLL('libcuda.so.1'); cuda.cuInit(0);"
        "context, device = ctypes.c_void_p(), ctypes.c_int();"
        "assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0;"
        "assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0;"
        "assert cuda.cuCtxSetCurrent(context) == 0; print('up', flush=True); sys.stdin.read()"
    )
    outsider = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert outsider.stdout is not None
        assert outsider.stdout.readline() == "up\n", "the outsider got no CUDA context"
        eventually(lambda: shown(pool, outsider.pid), "the pool does not see the outsider")
    finally:
        assert outsider.stdin is not None
        outsider.stdin.close()
        outsider.wait(30)
    eventually(lambda: not shown(pool, outsider.pid), "the pool still shows the outsider")
    return f"process {outsider.pid} was shown, then its device was free again"


def shown(pool: Pool, pid: int) -> bool:
    """Whether a device is kept back for this process."""
    return any(
        process.pid == pid and not one.free for one in devices_of(pool) for process in one.foreign
    )


def all_free(pool: Pool, count: int) -> bool:
    """Whether as many devices are free as before, none of them quarantined."""
    devices = devices_of(pool)
    assert not any(one.health == "quarantined" for one in devices), [
        one.problem for one in devices if one.problem
    ]
    return sum(one.free for one in devices) >= count


def used(devices: list[DeviceView]) -> str:
    """Memory in use on some devices."""
    return ", ".join(f"{format_bytes(one.memory_used_bytes or 0)} in use" for one in devices)


def devices_of(pool: Pool) -> list[DeviceView]:
    """The pool's devices now."""
    return list(pool.background.run(lambda _say: pool.client.devices()))


def eventually(is_so: Callable[[], bool], otherwise: str) -> None:
    """Look again until it is so.

    Raises:
        TimeoutError: If it never is.
    """
    deadline = time.monotonic() + _WITHIN_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
