"""What one worker needs of its host, and what hosts have: the nouns of placement.

Built by the manager from its books and by tests from a line or two. Amounts are whole numbers:
thousandths of a device, thousandths of a core, bytes.
"""

from enum import StrEnum
from typing import NamedTuple

from jupyter_gpupool.pool.ids import DeviceUuid, HostId

from .amounts import WHOLE_DEVICE


class WorkerShape(NamedTuple):
    """What one worker of a claim needs. Claims with equal shapes fit on the same hosts.

    A tuple, for a pass compares and hashes it many times.

    Attributes:
        devices: Whole devices, all of one kind and on one host; 0 for a part of one or for none.
        share: Thousandths of one device, 1 to 999, if it takes only a part.
        cpu: Thousandths of a core.
        memory_bytes: Of the host's memory.
        model: Substring of the device's model, lower case; "" is any.
        device_memory_bytes: Least memory that a device has in all.
        labels: What the host must be labelled.
        avoid: Hosts on which a start failed; the caller empties it if no other host is left.
        barred: Hosts on which it cannot run at all.
        spread: Each worker on a host of its own, as far as there are enough.
    """

    devices: int = 1
    share: int = 0
    cpu: int = 0
    memory_bytes: int = 0
    model: str = ""
    device_memory_bytes: int = 0
    labels: frozenset[str] = frozenset()
    avoid: frozenset[HostId] = frozenset()
    barred: frozenset[HostId] = frozenset()
    spread: bool = False

    @property
    def thousandths(self) -> int:
        """Thousandths of devices that one worker holds."""
        return self.devices * WHOLE_DEVICE + self.share


ONE_DEVICE = WorkerShape()
"""One whole device of any kind."""


class Obstacle(StrEnum):
    """What keeps a device from being leased, apart from a lease of the pool."""

    FREEING = "freeing"
    """Its last worker is still on it."""
    ELSEWHERE = "elsewhere"
    """Another pool on its host has it."""
    FOREIGN = "foreign"
    """Processes outside any claim use it."""
    QUARANTINED = "quarantined"
    HOST = "host"
    """Its host can start nothing now, or is being drained."""


class DeviceView(NamedTuple):
    """A device as a pass sees it.

    Attributes:
        may_be_leased: Nothing but a claim's lease stands against leasing it now.
        counts: It is part of what the pool has to share out; quarantined and foreign ones are not.
        obstacle: What stands against it, for those who wait.
        island: Devices of a host with equal numbers reach each other over NVLink.
        switch: Devices with equal numbers sit behind one PCIe switch.
        numa: Its NUMA node.
    """

    uuid: DeviceUuid
    model: str
    memory_bytes: int
    may_be_leased: bool = True
    counts: bool = True
    obstacle: Obstacle | None = None
    island: int = 0
    switch: int = 0
    numa: int = 0


class HostShape(NamedTuple):
    """A host as a pass sees it.

    Attributes:
        devices: All that are not lost, leased or not.
        cpu: Thousandths of cores for claims; 0 with `memory_bytes` 0 is "not counted".
        rack: Hosts with equal names are near each other.
        takes_more: It can start processes and is not being drained.
        durable: It is there to hold schedulers.
        schedulers: How many it holds.
    """

    id: HostId
    devices: tuple[DeviceView, ...] = ()
    cpu: int = 0
    memory_bytes: int = 0
    rack: str = ""
    labels: frozenset[str] = frozenset()
    takes_more: bool = True
    durable: bool = False
    schedulers: int = 0


class HeldWorker(NamedTuple):
    """A worker where it is or shall be.

    Attributes:
        devices: Its devices, in the order of the host; one if it holds a part of one; none if it
            needs none.
    """

    host_id: HostId
    devices: tuple[DeviceUuid, ...]
