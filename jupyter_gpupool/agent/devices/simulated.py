"""Devices that are not there: a machine without a GPU can run a whole pool on them.

Two pools on one host simulate the same devices, so that the host-wide lock keeps them apart there
as it does on real ones.
"""

import socket
import uuid
from datetime import UTC, datetime
from pathlib import Path

from jupyter_gpupool.pool.device import Device, DeviceSample
from jupyter_gpupool.pool.ids import DeviceUuid

DEFAULT_COUNT = 4
MEMORY_BYTES = 16 * 2**30
MODEL = "Simulated GPU 16 GiB"
_NAMESPACE = uuid.UUID("6b1f9f3e-53a9-4c0c-9d0e-6f5a6b8b7c11")
_MACHINE_IDS = (Path("/etc/machine-id"), Path("/proc/sys/kernel/random/boot_id"))


class SimulatedDevices:
    """`count` devices that are always well and never used."""

    def __init__(self, count: int = DEFAULT_COUNT, *, host: str = "") -> None:
        host = host or _this_host()
        self._devices = tuple(_device(host, index) for index in range(count))

    def list(self) -> tuple[Device, ...]:
        """The devices, always the same on one host."""
        return self._devices

    def sample(self) -> tuple[DeviceSample, ...]:
        """Nothing but the time: what a simulated device does, nobody can measure."""
        now = datetime.now(UTC)
        return tuple(DeviceSample(uuid=device.uuid, at=now) for device in self._devices)

    def close(self) -> None:
        """Nothing is held."""


def _device(host: str, index: int) -> Device:
    name = uuid.uuid5(_NAMESPACE, f"{host}/{index}")
    return Device(
        uuid=DeviceUuid(f"SIM-{name}"),
        index=index,
        model=MODEL,
        memory_bytes=MEMORY_BYTES,
        simulated=True,
    )


def _this_host() -> str:
    """Machine id and host name: images of one machine share the first, containers the second."""
    return f"{_machine_id()}/{socket.gethostname()}"


def _machine_id() -> str:
    for path in _MACHINE_IDS:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text:
            return text
    return ""
