"""Says what the stub NVML and CUDA pretend, and changes it while programs look on.

Used by tests, end-to-end tests and benchmarks:

    state = StubState(tmp_path).with_gpus(4)
    subprocess.run(command, env=os.environ | state.env())
    state.lose(2)

Each change rewrites one file by renaming, so that a program sees the old state or the new one.
"""

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from .build import StubLibraries, build

GPU_IS_LOST = 15
LIBRARY_NOT_FOUND = 12
NOT_SUPPORTED = 3
UNKNOWN_ERROR = 999
GIB = 2**30
SWITCH = "switch"
"""Far end of an NVLink that goes to an NVSwitch."""


class ProcessKind(StrEnum):
    """Which of NVML's three lists a process is in."""

    COMPUTE = "c"
    GRAPHICS = "g"
    MPS = "m"


@dataclass(frozen=True, slots=True, kw_only=True)
class StubMig:
    """A MIG instance. Contexts and processes add to `used_bytes`.

    Attributes:
        slot: NVML's index of it: those that were removed leave holes.
    """

    uuid: str
    slot: int = 0
    name: str = "NVIDIA Stub A100-16GB MIG 1g.2gb"
    gpu_instance: int = 1
    compute_instance: int = 0
    memory_bytes: int = 2 * GIB
    used_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StubGpu:
    """A GPU. Its place in the state is NVML's index; `bus` is its PCI bus and stays with it.

    Attributes:
        memory_bytes: 0 is a device without memory of its own.
        numa_node: -1 is not known.
        cpus: As Linux writes CPU lists, "0-3,8"; "" is not known.
        error: NVML error code of each call on it; 0 is success.
        processes_error: NVML error code of listing its processes.
        mig: Its instances; None is MIG mode off.
        xids: XIDs it has had; those added later become events.
    """

    uuid: str
    bus: int
    name: str = "NVIDIA Stub A100-16GB"
    memory_bytes: int = 16 * GIB
    used_bytes: int = 0
    utilisation_percent: int = 0
    temperature_c: int = 40
    power_mw: int = 60_000
    numa_node: int = 0
    cpus: str = ""
    error: int = 0
    processes_error: int = 0
    mig: tuple[StubMig, ...] | None = None
    ecc_uncorrected: int = 0
    retired_single: int = 0
    retired_double: int = 0
    retired_pending: bool = False
    remap_pending: bool = False
    remap_failed: bool = False
    xids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    device: str
    pid: int
    memory_bytes: int | None
    kind: ProcessKind


@dataclass(slots=True)
class StubState:
    """A state folder. Its methods return it, so that they can be chained.

    Args:
        folder: Made if needed. Any user may register contexts in it.
        libraries: The built stubs; None builds them when `env()` first wants them.
    """

    folder: Path
    libraries: StubLibraries | None = None
    gpus: list[StubGpu] = field(default_factory=list)
    context_bytes: int = 256 * 2**20
    _fail: int = 0
    _processes: list[_Process] = field(default_factory=list)
    _nvlinks: list[tuple[str, str]] = field(default_factory=list)
    _nears: list[tuple[str, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        contexts = self.folder / "contexts"
        contexts.mkdir(parents=True, exist_ok=True)
        contexts.chmod(0o1777)
        self._write()

    def env(self) -> dict[str, str]:
        """The variables that make a new process see the stubs. Build first, so it may raise."""
        self.libraries = self.libraries or build()
        paths = [str(self.libraries.folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        return {"LD_LIBRARY_PATH": ":".join(paths), "GPUPOOL_STUB_STATE": str(self.folder)}

    def with_gpus(self, *gpus: int | StubGpu) -> Self:
        """Add GPUs: some of one's own, or a number of plain ones."""
        for gpu in gpus:
            self.gpus += [gpu] if isinstance(gpu, StubGpu) else self._plain(gpu)
        return self._write()

    def change(self, index: int, **changes: Any) -> Self:
        """Set attributes of the GPU that is at `index` now."""
        self.gpus[index] = replace(self.gpus[index], **changes)
        return self._write()

    def split(self, index: int, instances: int = 2, memory_bytes: int = 2 * GIB) -> Self:
        """Put a GPU into MIG mode, with instances of their own memory; 0 leaves it without any."""
        gpu = self.gpus[index].uuid
        migs = tuple(
            StubMig(
                uuid=f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{gpu}/{instance}')}",
                slot=instance - 7,
                gpu_instance=instance,
                memory_bytes=memory_bytes,
            )
            for instance in range(7, 7 + instances)
        )
        return self.change(index, mig=migs)

    def destroy(self, index: int, instance: int) -> Self:
        """Remove a MIG instance; the others keep their slots."""
        left = list(self.gpus[index].mig or ())
        del left[instance]
        return self.change(index, mig=tuple(left))

    def lose(self, index: int) -> Self:
        """Let a GPU fall off the bus: each call on it says that it is lost."""
        return self.change(index, error=GPU_IS_LOST)

    def find(self, index: int) -> Self:
        """Bring a lost GPU back."""
        return self.change(index, error=0)

    def unplug(self, index: int) -> Self:
        """Take a GPU out of the list altogether."""
        del self.gpus[index]
        return self._write()

    def fail(self, code: int = UNKNOWN_ERROR) -> Self:
        """Make every NVML call return this error; 0 makes NVML work again."""
        self._fail = code
        return self._write()

    def shuffle(self, order: Sequence[int]) -> Self:
        """Put the GPUs into another order: the first is the one that was at `order[0]`."""
        assert sorted(order) == list(range(len(self.gpus))), "an order names each GPU once"
        self.gpus = [self.gpus[index] for index in order]
        return self._write()

    def xid(self, index: int, number: int) -> Self:
        """Let a GPU report an XID event."""
        return self.change(index, xids=(*self.gpus[index].xids, number))

    def add_process(
        self,
        device: str | int,
        pid: int,
        memory_bytes: int | None = GIB,
        kind: ProcessKind = ProcessKind.COMPUTE,
    ) -> Self:
        """List a process on a device (index or UUID), alive or not, until it is removed."""
        uuid = self.gpus[device].uuid if isinstance(device, int) else device
        self._processes.append(_Process(device=uuid, pid=pid, memory_bytes=memory_bytes, kind=kind))
        return self._write()

    def remove_process(self, pid: int) -> Self:
        """List a process no more."""
        self._processes = [process for process in self._processes if process.pid != pid]
        return self._write()

    def grow(self, pid: int, memory_bytes: int) -> Self:
        """Let each context of a process take so much memory, for as long as it lives."""
        for path in (self.folder / "contexts").glob(f"{pid}-*"):
            number, start, _, uuid = path.name.split("-", 3)
            path.rename(path.with_name(f"{number}-{start}-{memory_bytes}-{uuid}"))
        return self

    def nvlink(self, one: int, other: int) -> Self:
        """Connect two GPUs directly."""
        a, b = self.gpus[one].uuid, self.gpus[other].uuid
        self._nvlinks += [(a, b), (b, a)]
        return self._write()

    def nvswitch(self, *indices: int) -> Self:
        """Connect GPUs to an NVSwitch."""
        self._nvlinks += [(self.gpus[index].uuid, SWITCH) for index in indices]
        return self._write()

    def near(self, one: int, other: int, level: int) -> Self:
        """Set the PCIe ancestor two GPUs share, as NVML numbers them: 10 one switch … 50 system."""
        self._nears.append((self.gpus[one].uuid, self.gpus[other].uuid, level))
        return self._write()

    def _plain(self, count: int) -> list[StubGpu]:
        start = len(self.gpus)
        return [
            StubGpu(uuid=f"GPU-00000000-0000-4000-8000-{index:012x}", bus=index + 1)
            for index in range(start, start + count)
        ]

    def _write(self) -> Self:
        aside = self.folder / f"devices.{os.getpid()}"
        aside.write_text("".join(f"{line}\n" for line in self._lines()))
        aside.chmod(0o644)
        aside.rename(self.folder / "devices")
        return self

    def _lines(self) -> list[str]:
        return [
            _line("host", fail=self._fail, context_bytes=self.context_bytes),
            *(line for gpu in self.gpus for line in _gpu_lines(gpu)),
            *(_process_line(process) for process in self._processes),
            *(_line("nvlink", **{"from": a, "to": b}) for a, b in self._nvlinks),
            *(_line("near", a=a, b=b, level=level) for a, b, level in self._nears),
        ]


def _line(what: str, /, **values: object) -> str:
    return "\t".join([what, *(f"{key}={_text(value)}" for key, value in values.items())])


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _gpu_lines(gpu: StubGpu) -> list[str]:
    shown = _line(
        "gpu",
        uuid=gpu.uuid,
        name=gpu.name,
        bus=gpu.bus,
        memory=gpu.memory_bytes,
        used=gpu.used_bytes,
        utilisation=gpu.utilisation_percent,
        temperature=gpu.temperature_c,
        power_mw=gpu.power_mw,
        numa=gpu.numa_node,
        cpus=gpu.cpus or _all_cpus(),
        error=gpu.error,
        processes_error=gpu.processes_error,
        mig_mode=gpu.mig is not None,
        ecc=gpu.ecc_uncorrected,
        retired_single=gpu.retired_single,
        retired_double=gpu.retired_double,
        retired_pending=gpu.retired_pending,
        remap_pending=gpu.remap_pending,
        remap_failed=gpu.remap_failed,
        xids=",".join(map(str, gpu.xids)),
    )
    return [shown, *(_mig_line(gpu, mig) for mig in gpu.mig or ())]


def _mig_line(gpu: StubGpu, mig: StubMig) -> str:
    return _line(
        "mig",
        gpu=gpu.uuid,
        uuid=mig.uuid,
        name=mig.name,
        slot=mig.slot,
        gpu_instance=mig.gpu_instance,
        compute_instance=mig.compute_instance,
        memory=mig.memory_bytes,
        used=mig.used_bytes,
    )


def _process_line(process: _Process) -> str:
    return _line(
        "process",
        device=process.device,
        pid=process.pid,
        kind=process.kind.value,
        bytes="" if process.memory_bytes is None else process.memory_bytes,
    )


def _all_cpus() -> str:
    return f"0-{(os.cpu_count() or 1) - 1}"
