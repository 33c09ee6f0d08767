"""Which devices of one host belong together: NVLink before a PCIe switch before a NUMA node.

Called by `Inventory.choose` for each worker that is placed.
"""

from collections.abc import Sequence

from .bits import bits
from .shape import DeviceView


def nearest(devices: Sequence[DeviceView], free: int, count: int) -> int:
    """Bits of `count` of the free devices, near each other, leaving near ones together.

    The tightest group that holds them all is taken: the smallest number of free devices within one
    NVLink island, else one PCIe switch, else one NUMA node, else the host.
    """
    if count == free.bit_count():
        return free
    for level in ("island", "switch", "numa"):
        groups: dict[int, int] = {}
        for position in bits(free):
            group = getattr(devices[position], level)
            groups[group] = groups.get(group, 0) | 1 << position
        fitting = [group for group in groups.values() if group.bit_count() >= count]
        if fitting and len(groups) > 1:
            return _first(min(fitting, key=lambda group: (group.bit_count(), group)), count)
    return _first(free, count)


def _first(group: int, count: int) -> int:
    chosen = 0
    for position, _ in zip(bits(group), range(count), strict=False):
        chosen |= 1 << position
    return chosen
