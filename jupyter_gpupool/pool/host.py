"""A host: a machine whose devices are in the pool, and whether it answers."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from .device import Device, DeviceState
from .ids import DeviceUuid, HostId


class HostPhase(StrEnum):
    """Whether the manager hears a host's agent."""

    CONNECTED = "connected"
    SILENT = "silent"
    """Its agent's link is down; what runs there is assumed to run on."""
    LOST = "lost"
    """Silent for longer than `host_lost_after`: its leases are given up."""


DURABLE = "durable"
"""Label of hosts that may hold schedulers: never taken for empty, never drained under one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine of the pool, as last reported by its agent.

    Attributes:
        name: What people call it.
        address: Where its workers and schedulers listen.
        since: When it entered this phase.
        problem: One sentence when it is not well, else "".
    """

    id: HostId
    name: str
    address: str
    phase: HostPhase
    since: datetime
    cpus: int
    memory_bytes: int
    labels: frozenset[str] = frozenset()
    devices: tuple[Device, ...] = ()
    states: tuple[tuple[DeviceUuid, DeviceState], ...] = ()
    problem: str = ""
