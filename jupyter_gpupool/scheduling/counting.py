"""How many workers of a shape the pool could hold: on what is free, and if it were empty.

Asked once a pass for each shape that waits, so that a claim can be told what it waits for.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from jupyter_gpupool.pool.ids import HostId

from .amounts import WHOLE_DEVICE
from .bits import bits
from .inventory import Inventory
from .shape import HostShape, Obstacle, WorkerShape


class Gang(NamedTuple):
    """How many workers, and on how many hosts."""

    workers: int
    hosts: int


class _Kind(NamedTuple):
    """Bays of one kind of device and one size, on hosts of one size, as bits."""

    model: str
    memory_bytes: int
    size: int
    host_cpu: int
    host_memory: int
    bays: int

    def holds(self, shape: WorkerShape) -> int:
        """How many workers of a shape such a bay holds when it is empty."""
        most = self.size // shape.devices if shape.devices else max(1, self.size)
        if shape.share:
            most = self.size * (WHOLE_DEVICE // shape.share)
        if shape.cpu and self.host_cpu:
            most = min(most, self.host_cpu // shape.cpu)
        if shape.memory_bytes and self.host_memory:
            most = min(most, self.host_memory // shape.memory_bytes)
        return most


class Counting:
    """The pool as whoever waits sees it: all devices that have joined, out of order or not."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._kinds = tuple(_kinds(inventory))
        self._hindered = tuple(_hindered(inventory.hosts))

    def largest(self, shape: WorkerShape) -> Gang:
        """Count the largest gang that the pool could serve if it were empty and in order."""
        workers = hosts = 0
        shut_out = self._shut_out(shape)
        for kind in self._kinds:
            if not _would_do(shape, kind.model, kind.memory_bytes):
                continue
            each = kind.holds(shape)
            bays = (kind.bays & ~shut_out).bit_count() if each else 0
            workers += bays * each
            hosts += bays
        return Gang(workers, hosts)

    def free(self, shape: WorkerShape) -> int:
        """Count the workers that would fit on devices that are wholly free, host by host."""
        inventory, accepted = self._inventory, self._inventory.accepting(shape)
        if shape.cpu or shape.memory_bytes:
            return sum(self._room(bay, shape) for bay in bits(accepted))
        each = shape.devices or 1
        return sum(
            free // each * (bays & accepted).bit_count()
            for free, bays in enumerate(inventory.by_free)
        )

    def _room(self, bay: int, shape: WorkerShape) -> int:
        room = self._inventory.room(bay, shape)
        free = self._inventory.bays[bay].whole.bit_count()
        return min(room, free) if shape.thousandths else room

    def obstacles(self, shape: WorkerShape) -> Iterator[Obstacle]:
        """List what stands against each device that would do, leases left out."""
        out = shape.barred | shape.avoid
        return (
            obstacle
            for host_id, model, memory_bytes, obstacle in self._hindered
            if _would_do(shape, model, memory_bytes) and host_id not in out
        )

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The models of all devices as their hosts call them, most numerous first."""
        counted = Counter(device.model for host in self._inventory.hosts for device in host.devices)
        return tuple(sorted(counted, key=lambda model: (-counted[model], model)))

    def _shut_out(self, shape: WorkerShape) -> int:
        """Bits of the bays on hosts where a shape may not run or that lack its labels."""
        numbers = map(self._inventory.host_number, sorted(shape.barred))
        hosts = [number for number in numbers if number is not None]
        if shape.labels:
            hosts += [
                number
                for number, host in enumerate(self._inventory.hosts)
                if not shape.labels <= host.labels
            ]
        return sum(1 << bay for host in set(hosts) for bay in self._inventory.bays_of(host))


def _kinds(inventory: Inventory) -> Iterable[_Kind]:
    found: dict[tuple[str, int, int, int, int], int] = {}
    for number, bay in enumerate(inventory.bays):
        model, memory = (
            (bay.devices[0].model, bay.devices[0].memory_bytes) if bay.devices else ("", 0)
        )
        host = inventory.hosts[bay.host]
        key = (model.lower(), memory, len(bay.devices), host.cpu, host.memory_bytes)
        found[key] = found.get(key, 0) | 1 << number
    return (_Kind(*key, bays) for key, bays in found.items())


def _hindered(hosts: Iterable[HostShape]) -> Iterator[tuple[HostId, str, int, Obstacle]]:
    for host in hosts:
        for device in host.devices:
            obstacle = device.obstacle if host.takes_more else Obstacle.HOST
            if obstacle is not None:
                yield host.id, device.model.lower(), device.memory_bytes, obstacle


def _would_do(shape: WorkerShape, model: str, memory_bytes: int) -> bool:
    if not shape.devices and not shape.share:
        return True
    return memory_bytes >= shape.device_memory_bytes and shape.model in model
