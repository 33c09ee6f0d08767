"""What one scheduling pass sees: frozen, ordered, without clock or identity of any service.

Built by the manager from its books; built by tests from a line or two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, UserName


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeDevice:
    """A device that may be leased now."""

    uuid: DeviceUuid
    model: str
    memory_bytes: int


class Obstacle(StrEnum):
    """What keeps a device of the pool from being leased now."""

    LEASED = "leased"
    """A claim of this pool has it."""
    FREEING = "freeing"
    """Its last worker is still on it."""
    ELSEWHERE = "elsewhere"
    """Another pool on its host has it."""
    FOREIGN = "foreign"
    """Processes outside any claim use it."""
    QUARANTINED = "quarantined"
    HOST = "host"
    """Its host can start nothing now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """A connected host as a pass sees it.

    Attributes:
        durable: It is there to hold schedulers.
        schedulers: How many it holds.
        capacity: All its devices that are not lost, free or not: what could ever be granted.
        can_start: It can start processes now; else it gets none, whatever is free.
        obstacles: What keeps those of `capacity` that are not free.
    """

    id: HostId
    durable: bool
    schedulers: int
    free: tuple[FreeDevice, ...]
    capacity: tuple[FreeDevice, ...]
    can_start: bool = True
    obstacles: Mapping[DeviceUuid, Obstacle] = field(default_factory=dict)


class Terms(NamedTuple):
    """What a device must be for a claim. Claims with equal terms accept the same devices.

    A tuple, for a pass compares and hashes it several times for each claim in line.
    """

    model: str
    gpu_memory_bytes: int
    avoid: frozenset[HostId] = frozenset()
    barred: frozenset[HostId] = frozenset()

    def accept(self, host: HostId, device: FreeDevice) -> bool:
        """Whether this device of this host fits."""
        fits = self.model in device.model.lower() and device.memory_bytes >= self.gpu_memory_bytes
        return fits and host not in self.avoid and host not in self.barred


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What one claim lacks.

    Attributes:
        minimum: Devices it needs together before it gets any; 0 for a claim that runs.
        maximum: Devices it would take; at least `minimum`.
        model: Substring of the model, lower case; "" is any.
        gpu_memory_bytes: Least memory a device.
        scheduler_host: Where its scheduler runs already, else None.
        avoid: Hosts on which a start of it failed; heeded as long as others could serve it.
        barred: Hosts on which it cannot run at all.
        barred_why: Why not on one of them, as a sentence.
        since: When it asked: its place in line.
    """

    claim_id: ClaimId
    owner: UserName
    since: datetime
    minimum: int
    maximum: int
    model: str = ""
    gpu_memory_bytes: int = 0
    scheduler_host: HostId | None = None
    avoid: frozenset[HostId] = frozenset()
    barred: frozenset[HostId] = frozenset()
    barred_why: str = ""

    @property
    def terms(self) -> Terms:
        """What a device must be for it."""
        return Terms(self.model, self.gpu_memory_bytes, self.avoid, self.barred)

    def accepts(self, host: HostId, device: FreeDevice) -> bool:
        """Whether this device of this host fits its terms."""
        return self.terms.accept(host, device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The pool at one moment. Order of `hosts` and `wants` does not matter to a plan."""

    hosts: tuple[HostView, ...]
    wants: tuple[Want, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A device on its host."""

    host_id: HostId
    device: DeviceUuid


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Devices for one claim, and where its scheduler runs."""

    claim_id: ClaimId
    scheduler_host: HostId
    devices: tuple[Placed, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why a claim did not get what it wants: its place in line, from 1, and what binds it.

    Attributes:
        place: Counted among those who could use a device that it could use.
        never: The pool as it is could not serve it even if it were empty.
    """

    claim_id: ClaimId
    place: int
    reason: str
    never: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one pass decides. Every want has a grant or a wait, or both if it got a part."""

    grants: tuple[Grant, ...]
    waits: tuple[Wait, ...]
