"""How many workers of a shape the pool could hold: on what is free, and if it were empty.

Asked once a pass for each shape that waits, so that a claim can be told what it waits for.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jupyter_gpupool.pool.ids import HostId

from .inventory import Inventory
from .shape import WHOLE, HostShape, Obstacle, WorkerShape


class Gang(NamedTuple):
    """How many workers, and on how many hosts."""

    workers: int
    hosts: int


class _Kind(NamedTuple):
    """Bays of one kind of device and one size, as bits."""

    model: str
    memory_bytes: int
    size: int
    bays: int


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
            each = kind.size // shape.devices if shape.devices else kind.size
            bays = (kind.bays & ~shut_out).bit_count() if each else 0
            workers += bays * each * (WHOLE // shape.share if shape.share else 1)
            hosts += bays
        return Gang(workers, hosts)

    def free(self, shape: WorkerShape) -> int:
        """Count the workers that would fit on devices that are wholly free, host by host."""
        inventory, accepted = self._inventory, self._inventory.accepting(shape)
        each = shape.devices or 1
        return sum(
            free // each * (bays & accepted).bit_count()
            for free, bays in enumerate(inventory.by_free)
        )

    def obstacles(self, shape: WorkerShape) -> Iterator[Obstacle]:
        """List what stands against each device that would do, leases left out."""
        out = shape.barred | shape.avoid
        return (
            obstacle
            for host_id, model, memory_bytes, obstacle in self._hindered
            if _would_do(shape, model, memory_bytes) and host_id not in out
        )

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
    found: dict[tuple[str, int, int], int] = {}
    for number, bay in enumerate(inventory.bays):
        model, memory = (
            (bay.devices[0].model, bay.devices[0].memory_bytes) if bay.devices else ("", 0)
        )
        key = (model.lower(), memory, len(bay.devices))
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
