"""Bays: the devices of one kind on one host, which of them are free, and who accepts them.

A host with whole GPUs and MIG instances has two bays. Changed by `Inventory` alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .shape import DeviceView, HostShape, WorkerShape
from .topology import Groups


class Kind(NamedTuple):
    """All by which a shape accepts or refuses a bay: bays of one kind are the same to every shape.

    Attributes:
        model: Of its devices, lower case; "" without devices.
        memory_bytes: Of each of its devices; 0 without devices.
        is_open: Its host takes more.
    """

    model: str
    memory_bytes: int
    labels: frozenset[str]
    is_open: bool
    has_devices: bool

    def accepts(self, shape: WorkerShape) -> bool:
        """Whether workers of a shape may go here, free or not."""
        if not self.is_open or not shape.labels <= self.labels:
            return False
        if not shape.devices and not shape.share:
            return True
        if not self.has_devices or self.memory_bytes < shape.device_memory_bytes:
            return False
        return shape.model in self.model


@dataclass(slots=True)
class Bay:
    """The devices of one kind on one host.

    Attributes:
        host: Its number.
        kind: The number of its kind.
        leasable: Bits of devices that nothing outside the books keeps from being leased.
        whole: Those of them that nobody holds.
        doubled: Bits of devices that another host names too: this one may not have them.
        held: Bits of devices that somebody holds wholly.
        shared: Bits of devices that are held in part.
        parts: Free thousandths of each device that is held in part, by its number.
        sharers: Who holds parts of it, by its number.
        groups: Which devices are near each other; None until somebody asks.
    """

    host: int
    devices: tuple[DeviceView, ...]
    kind: int
    leasable: int
    whole: int
    doubled: int = 0
    held: int = 0
    shared: int = 0
    parts: dict[int, int] = field(default_factory=dict)
    sharers: dict[int, str] = field(default_factory=dict)
    groups: Groups | None = None

    def open_parts(self) -> list[tuple[int, int]]:
        """What is left of devices held in part that may be leased: number and free thousandths.

        Not of one that is being freed of another part, or is not well.
        """
        return [each for each in self.parts.items() if self.leasable >> each[0] & 1]

    def parts_of(self, sharer: str, least: int) -> list[tuple[int, int]]:
        """Those of them that some people share and of which at least so much is left."""
        return [
            (position, left)
            for position, left in self.parts.items()
            if left >= least and self.sharers[position] == sharer and self.leasable >> position & 1
        ]

    def copy(self) -> "Bay":
        """Give a bay that changes apart from this one."""
        return Bay(
            self.host,
            self.devices,
            self.kind,
            self.leasable,
            self.whole,
            self.doubled,
            self.held,
            self.shared,
            dict(self.parts) if self.parts else {},
            dict(self.sharers) if self.sharers else {},
            self.groups,
        )


def leasable(devices: Sequence[DeviceView]) -> int:
    """Bits of the devices that nothing outside the books keeps from being leased."""
    found, bit = 0, 1
    for device in devices:
        if device.may_be_leased:
            found |= bit
        bit <<= 1
    return found


def by_kind(devices: tuple[DeviceView, ...]) -> list[tuple[DeviceView, ...]]:
    """Part a host's devices by model and memory; one empty part for a host without any."""
    if len({device[1:3] for device in devices}) <= 1:
        return [devices]
    kinds: dict[tuple[str, int], list[DeviceView]] = {}
    for device in devices:
        kinds.setdefault((device.model, device.memory_bytes), []).append(device)
    return list(map(tuple, kinds.values()))


def kind_of(host: HostShape, devices: Sequence[DeviceView]) -> Kind:
    """The kind of these devices of a host."""
    if not devices:
        return Kind("", 0, host.labels, host.takes_more, has_devices=False)
    model, memory_bytes = devices[0].model.lower(), devices[0].memory_bytes
    return Kind(model, memory_bytes, host.labels, host.takes_more, has_devices=True)
