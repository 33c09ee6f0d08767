"""What each worker of a claim gets: whole devices of one host, or a part of one device.

Built where a claim's terms enter. How large a part is depends on the device if it is told in bytes:
the manager works that out for each model that it knows.
"""

import math
from dataclasses import dataclass

from .errors import BadRequest
from .lease import WHOLE_DEVICE

MOST_DEVICES = 16
"""Of one worker: as many as the largest hosts have."""
_MOST_BYTES = 2**60


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDevices:
    """What each worker gets.

    Attributes:
        count: Whole devices, all of one kind and on one host; 0 if it gets a part of one.
        share: Thousandths of one device, 1 to 999; 0 if it is not told so.
        memory_bytes: Memory of its part of one device, at least; 0 if it is not told so.

    Raises:
        BadRequest: If it is none of the three, or more than one of them.
    """

    count: int = 1
    share: int = 0
    memory_bytes: int = 0

    def __post_init__(self) -> None:
        if (self.count > 0) + (self.share > 0) + (self.memory_bytes > 0) != 1:
            raise BadRequest(
                "A worker gets whole devices, a part of one by its share, or a part by its memory.",
                field="gpus_per_worker",
                hint='Say one of gpus=2, gpus=0.5 and gpu_memory="10GiB".',
            )
        if not (0 <= self.count <= MOST_DEVICES and 0 <= self.share < WHOLE_DEVICE):
            raise _no_number(self.count or self.share / WHOLE_DEVICE)
        if not 0 <= self.memory_bytes <= _MOST_BYTES:
            raise BadRequest(
                f"{self.memory_bytes} bytes of device memory make no sense.",
                field="gpu_memory",
                hint='Ask for example "10GiB".',
            )

    @property
    def is_part(self) -> bool:
        """Whether a worker gets a part of a device, which others may hold the rest of."""
        return self.count == 0

    def share_of(self, device_bytes: int) -> int:
        """Thousandths of a device with so much memory that a worker's part is, rounded up.

        A whole device and more if its part is no smaller than that.
        """
        if not self.memory_bytes:
            return self.share or WHOLE_DEVICE
        return max(1, -(-self.memory_bytes * WHOLE_DEVICE // max(1, device_bytes)))


ONE_DEVICE = WorkerDevices()
"""One whole device."""


def worker_devices(per_worker: float, memory_bytes: int = 0) -> WorkerDevices:
    """Read how many devices a worker gets, such as 2 or 0.5; or how much memory of one.

    Raises:
        BadRequest: If that makes no sense; `field` names the term.
    """
    if memory_bytes:
        if per_worker != 1:
            raise BadRequest(
                "gpu_memory is a part of one device already.",
                field="gpu_memory",
                hint="Leave out gpu_memory, or the number of devices a worker.",
            )
        return WorkerDevices(count=0, memory_bytes=memory_bytes)
    if not (math.isfinite(per_worker) and 0 < per_worker <= MOST_DEVICES):
        raise _no_number(per_worker)
    if per_worker >= 1:
        if per_worker != int(per_worker):
            raise _no_number(per_worker)
        return WorkerDevices(count=int(per_worker))
    share = round(per_worker * WHOLE_DEVICE)
    if share == WHOLE_DEVICE:
        return ONE_DEVICE
    if share == 0:
        raise _no_number(per_worker)
    return WorkerDevices(count=0, share=share)


def _no_number(per_worker: float) -> BadRequest:
    return BadRequest(
        f"{per_worker:g} devices a worker make no sense.",
        field="gpus_per_worker",
        hint=f"Ask for 1 to {MOST_DEVICES}, or for a part of one from 0.001 to 0.999.",
    )
