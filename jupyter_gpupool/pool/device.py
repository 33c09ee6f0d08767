"""A device: a GPU or a MIG instance, what it is and how it is right now."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from .ids import DeviceUuid, LeaseId


class LinkKind(StrEnum):
    """How two devices of a host reach each other, nearest first."""

    NVLINK = "nvlink"
    PCIE_SWITCH = "pcie-switch"
    """Behind one PCIe switch."""
    PCIE_BRIDGE = "pcie-bridge"
    """Behind one host bridge."""
    NUMA = "numa"
    """On one NUMA node."""
    SYSTEM = "system"
    """Across the sockets' interconnect."""


class Health(StrEnum):
    """May the device be leased?"""

    HEALTHY = "healthy"
    QUARANTINED = "quarantined"
    """Seen, but not to be leased until its problem is gone."""
    LOST = "lost"
    """Listed before, and no longer answering: it fell off the bus or NVML failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A path from one device to another one on its host."""

    to: DeviceUuid
    kind: LinkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a device is: nothing here changes while the host is up.

    Attributes:
        index: Position in NVML's order. Shuffles between boots, so it is never an identity.
        memory_bytes: Its own memory; a MIG instance has its own, not its parent's.
        parent: The GPU of a MIG instance, else None.
        numa_node: None where the machine has no such thing.
        cpu_affinity: Logical CPUs near the device; empty means unknown.
    """

    uuid: DeviceUuid
    index: int
    model: str
    memory_bytes: int
    simulated: bool = False
    parent: DeviceUuid | None = None
    numa_node: int | None = None
    cpu_affinity: tuple[int, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProcess:
    """A process that NVML lists on a device. `memory_bytes` is None where NVML cannot say.

    Attributes:
        graphics_only: It only draws, as a desktop does: shown, but no computing of anybody's.
    """

    pid: int
    memory_bytes: int | None
    user: str = ""
    command: str = ""
    graphics_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSample:
    """What NVML says of a device at one moment.

    Attributes:
        utilisation: 0 to 1, or None where NVML cannot say (MIG, simulated).
        memory_used_bytes: None where NVML cannot say.
        processes: None where NVML cannot say, which is not the same as none.
        problems: Sentences on what is wrong with it (ECC, XID, lost); empty is well.
        removed: Lost because it is no more: NVML works and lists the GPU that this instance was
            cut from, but not the instance.
    """

    uuid: DeviceUuid
    at: datetime
    utilisation: float | None = None
    memory_used_bytes: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    processes: tuple[DeviceProcess, ...] | None = ()
    problems: tuple[str, ...] = ()
    lost: bool = False
    removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """Whether a device may be leased, and what stands against it: the agent's word.

    Attributes:
        problem: What people should know of it, in sentences; it may be healthy all the same.
        foreign: Processes that use it outside any claim. Shown; no lease comes on top of those that
            compute.
        held_elsewhere: Another pool on this host has leased it.
        in_use_by: Leases whose process or memory is still on it, as the agent sees it.
    """

    health: Health = Health.HEALTHY
    problem: str = ""
    foreign: tuple[DeviceProcess, ...] = ()
    held_elsewhere: bool = False
    in_use_by: tuple[LeaseId, ...] = ()

    @property
    def may_be_leased(self) -> bool:
        """Whether nothing on the host stands against leasing it now."""
        return (
            self.health is Health.HEALTHY
            and all(process.graphics_only for process in self.foreign)
            and not self.held_elsewhere
            and not self.in_use_by
        )
