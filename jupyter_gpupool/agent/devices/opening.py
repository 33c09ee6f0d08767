"""Chooses what the agent works with: the host's devices, or simulated ones and a notice."""

from dataclasses import dataclass
from pathlib import Path

from jupyter_gpupool.pool.units import plural

from .base import Devices
from .simulated import DEFAULT_COUNT, SimulatedDevices

WHAT_RUNS = (
    "of dask-cuda, DeviceHostFile's spilling and PreImport run,"
    " while CPUAffinity, RMM, cuDF and the CUDA context need a real GPU"
)
_NO_LIBRARY = "the NVML library of the NVIDIA driver is missing"


@dataclass(frozen=True, slots=True)
class OpenedDevices:
    """Devices, and one sentence for people when they are not what one would expect, else ""."""

    devices: Devices
    notice: str = ""


def open_devices(
    simulated: int | None = None, *, host: str = "", xid_record: Path | None = None
) -> OpenedDevices:
    """Open the host's devices.

    Args:
        simulated: How many to simulate where there is no GPU: None is four, 0 never simulates.
        host: Names the host that is simulated; "" is this machine.
        xid_record: Where the hardware errors of GPUs are kept for the next agent of this host.

    A driver that is there and fails is no machine without a GPU: it is opened, and recovers.
    """
    real, why_not = _open_nvml(xid_record)
    if real is not None:
        return OpenedDevices(real, why_not)
    count = DEFAULT_COUNT if simulated is None else simulated
    if not count:
        return OpenedDevices(SimulatedDevices(0), f"No GPU here: {why_not}.")
    notice = f"No GPU here: {why_not}. {plural(count, 'device')} are simulated: {WHAT_RUNS}."
    return OpenedDevices(SimulatedDevices(count, host=host), notice)


def _open_nvml(xid_record: Path | None) -> tuple[Devices | None, str]:
    """NVML's devices with a notice if they fail now, or None with the reason why there are none."""
    try:
        # Here, for the package is only where hosts are, and takes a while to import.
        import pynvml  # noqa: PLC0415

        from .nvml import NvmlDevices  # noqa: PLC0415
    except ImportError:
        return None, "the package nvidia-ml-py is not installed"
    devices = NvmlDevices(xid_record=xid_record)
    absent = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: _NO_LIBRARY,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded",
    }
    if devices.failure is not None:
        reason = absent.get(getattr(devices.failure, "value", None))
        if reason is None:
            return devices, devices.notice
    else:
        reason = "" if devices.list() else "NVML lists no GPU"
    if reason:
        devices.close()
        return None, reason
    return devices, ""
