"""Can GPUs of this machine be used: the driver, its library, and the right to open them?"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.units import plural

from .finding import Finding, note, problem, warning, well
from .sight import Sight

if TYPE_CHECKING:
    from jupyter_gpupool.agent.devices.base import Devices

_PCI = Path("/sys/bus/pci/devices")
_NODES = Path("/dev")
_NVIDIA = "0x10de"
_DISPLAY = "0x03"
"""First byte of the PCI class of what computes or draws."""
_NO_PERMISSION, _NO_DRIVER, _NO_LIBRARY, _VERSION_MISMATCH = 4, 9, 12, 18
"""NVML's numbers; its module may not be installed."""


class Nvml(Enum):
    """How far NVML, the library of the NVIDIA driver, can be used; the value says why not."""

    WORKS = "NVML works"
    NO_PACKAGE = "the package nvidia-ml-py is not installed"
    NO_LIBRARY = "the NVML library of the NVIDIA driver, libnvidia-ml.so.1, is missing"
    NO_DRIVER = "the NVIDIA driver is not loaded"
    NO_PERMISSION = "you have no right to use the NVIDIA driver"
    MISMATCH = "the loaded NVIDIA driver and its libraries are of different versions"
    FAILS = "the NVIDIA driver fails"


_BY_CODE = {
    _NO_PERMISSION: Nvml.NO_PERMISSION,
    _NO_DRIVER: Nvml.NO_DRIVER,
    _NO_LIBRARY: Nvml.NO_LIBRARY,
    _VERSION_MISMATCH: Nvml.MISMATCH,
}
_MENDS = {
    Nvml.NO_PACKAGE: 'Run: pip install "jupyter-gpupool[host]"',
    Nvml.NO_LIBRARY: "Install the NVIDIA driver; a container needs its GPUs given, as --gpus all.",
    Nvml.NO_DRIVER: "Load it with `modprobe nvidia`; `dmesg` says why it does not load by itself.",
    Nvml.NO_PERMISSION: "Ask the administrator for the group that owns /dev/nvidia*.",
    Nvml.MISMATCH: "Restart the machine: its driver was updated while it ran.",
    Nvml.FAILS: "Look at what `nvidia-smi` and `dmesg` say; the driver may have to be reloaded.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """What this machine shows of GPUs.

    Attributes:
        said: NVML's own words when it fails.
        devices: How many NVML lists; instances of a split GPU count each.
        gpus: On how many GPUs these are.
        broken: A sentence for each that it lists and that is not well.
        built_in: How many NVIDIA GPUs are in the machine, driver or not.
        closed: Device files that this user may not open.
    """

    nvml: Nvml
    said: str = ""
    devices: int = 0
    gpus: int = 0
    broken: tuple[str, ...] = ()
    built_in: int = 0
    closed: tuple[Path, ...] = ()


def check_gpus(_sight: Sight) -> Iterator[Finding]:
    """See what NVML, the PCI bus and /dev have to say."""
    built_in, closed = count_gpus(_PCI), closed_nodes(_NODES)
    yield from judge_gpus(replace(_ask_nvml(), built_in=built_in, closed=closed))


def judge_gpus(facts: GpuFacts) -> Iterator[Finding]:
    """Without a GPU a private pool simulates devices; a GPU that cannot be used is a problem."""
    if facts.closed:
        yield problem(
            "device-files-closed",
            f"You may not open {', '.join(map(str, facts.closed))}.",
            _MENDS[Nvml.NO_PERMISSION],
        )
    if facts.nvml is Nvml.WORKS and facts.devices:
        yield well("gpus", f"NVML lists {plural(facts.devices, 'device')}.")
    elif facts.built_in or facts.nvml in (Nvml.MISMATCH, Nvml.NO_PERMISSION, Nvml.FAILS):
        yield _unusable(facts)
    else:
        yield note(
            "no-gpu",
            "This machine shows no NVIDIA GPU.",
            "Nothing, if none is meant to be here: a private pool simulates devices.",
        )
    if facts.devices and facts.built_in > facts.gpus:
        what = f"NVML lists {facts.gpus} of the {facts.built_in} NVIDIA GPUs in this machine."
        yield warning("gpu-not-listed", what, _MENDS[Nvml.FAILS])
    for sentence in facts.broken:
        yield problem("gpu-broken", sentence, _MENDS[Nvml.FAILS])


def _unusable(facts: GpuFacts) -> Finding:
    has = f"This machine has {plural(facts.built_in, 'NVIDIA GPU')}, but " if facts.built_in else ""
    if facts.nvml is Nvml.WORKS:
        return problem("nvml-lists-nothing", f"{has}NVML lists no device.", _MENDS[Nvml.FAILS])
    what = has + facts.nvml.value
    said = f" and says {facts.said}" if facts.said else ""
    reference = "nvml-" + facts.nvml.name.lower().replace("_", "-")
    return problem(reference, f"{what[0].upper()}{what[1:]}{said}.", _MENDS[facts.nvml])


def _ask_nvml() -> GpuFacts:
    try:
        # Here, for a machine that only claims has no pynvml.
        from jupyter_gpupool.agent.devices.nvml import NvmlDevices  # noqa: PLC0415
    except ModuleNotFoundError:
        return GpuFacts(nvml=Nvml.NO_PACKAGE)
    devices = NvmlDevices()
    try:
        return _failed(devices.failure) if devices.failure is not None else _listed(devices)
    finally:
        devices.close()


def _failed(failure: Exception) -> GpuFacts:
    nvml = _BY_CODE.get(getattr(failure, "value", 0), Nvml.FAILS)
    return GpuFacts(nvml=nvml, said=str(failure) if nvml is Nvml.FAILS else "")


def _listed(devices: "Devices") -> GpuFacts:
    listed = devices.list()
    broken = [f"{each.uuid}: {text}" for each in devices.sample() for text in each.problems]
    return GpuFacts(
        nvml=Nvml.WORKS,
        devices=len(listed),
        gpus=len({each.parent or each.uuid for each in listed}),
        broken=tuple(broken),
    )


def count_gpus(pci: Path) -> int:
    """How many of NVIDIA's display and compute devices are on the PCI bus."""
    return sum(
        _text(each / "vendor") == _NVIDIA and _text(each / "class").startswith(_DISPLAY)
        for each in pci.glob("*")
    )


def closed_nodes(folder: Path) -> tuple[Path, ...]:
    """The device files of NVIDIA's driver that this user may not open."""
    nodes = (path for path in sorted(folder.glob("nvidia*")) if path.is_char_device())
    return tuple(
        path for path in nodes if not os.access(path, os.R_OK | os.W_OK, effective_ids=True)
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
