"""Which devices of one host belong together: NVLink before a PCIe switch before a NUMA node.

Called by `Inventory.choose` for each worker that is placed. Each device is one bit, as in a bay.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from .bits import first
from .shape import DeviceView

Groups: TypeAlias = tuple[tuple[int, ...], ...]
"""Bits of the devices that are one group, level by level, the closest level first."""


def groups_of(devices: Sequence[DeviceView]) -> Groups:
    """Find the groups of a bay's devices; a level on which all are together tells nothing."""
    islands = _grouped([device.island for device in devices])
    switches = _grouped([device.switch for device in devices])
    nodes = _grouped([device.numa for device in devices])
    return tuple(level for level in (islands, switches, nodes) if len(level) > 1)


def _grouped(labels: Sequence[int]) -> tuple[int, ...]:
    groups: dict[int, int] = {}
    for position, label in enumerate(labels):
        groups[label] = groups.get(label, 0) | 1 << position
    return tuple(groups.values())


def nearest(devices: Sequence[DeviceView], free: int, count: int) -> int:
    """Bits of `count` of the free devices, near each other, leaving near ones together."""
    return nearest_in(groups_of(devices), free, count)


@lru_cache(maxsize=1 << 16)
def nearest_in(groups: Groups, free: int, count: int) -> int:
    """Bits of `count` of the free devices, near each other, leaving near ones together.

    Of the closest level on which one group has enough, the group with the fewest free devices is
    taken. Where none has, the largest is taken whole and the rest near each other. Remembered, for
    a pass asks the same of many hosts.
    """
    if count >= free.bit_count():
        return free
    for depth, level in enumerate(groups):
        fitting = [group & free for group in level if (group & free).bit_count() >= count]
        if fitting:
            return _filled(groups[:depth], min(fitting, key=_size), count)
    return _filled(groups, free, count)


def _filled(groups: Groups, free: int, count: int) -> int:
    """So many, where no group has enough: all of the largest, and the rest near each other."""
    if not groups or not count:
        return first(free, count)
    parts = [part & free for part in groups[-1] if part & free]
    if len(parts) == 1:
        return _filled(groups[:-1], free, count)
    whole = max(parts, key=_size)
    return whole | nearest_in(groups, free & ~whole, count - whole.bit_count())


def _size(group: int) -> tuple[int, int]:
    return group.bit_count(), group
