"""The line of claims that wait: who is ahead of whom, and which devices that keeps from others.

Made anew by each pass. Claims with equal terms accept the same devices, so what is accepted is
worked out once for all of them: thousands in line before a full pool cost little.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from jupyter_gpupool.pool.ids import DeviceUuid, HostId

from .snapshot import FreeDevice, Obstacle, Snapshot, Terms, Want


class Line:
    """The claims that wait, in order. Those ahead keep what they could use from those behind."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._capacity = {d.uuid: (h.id, d) for h in snapshot.hosts for d in h.capacity}
        self._obstacles = {uuid: o for h in snapshot.hosts for uuid, o in h.obstacles.items()}
        self._hindered: dict[Terms, Mapping[Obstacle, int]] = {}
        self._accepted: dict[Terms, frozenset[DeviceUuid]] = {}
        self._waiting: Counter[Terms] = Counter()
        self._kept: frozenset[DeviceUuid] = frozenset()

    def join(self, want: Want) -> None:
        """Let `want` wait, behind all who joined before it."""
        terms = want.terms
        if terms not in self._waiting:
            self._kept |= self._accepts(terms)
        self._waiting[terms] += 1

    def possible(self, want: Want) -> int:
        """How many devices of the pool fit its terms, free or not."""
        return len(self._accepts(want.terms))

    def hindered(self, want: Want) -> Mapping[Obstacle, int]:
        """How many of the devices that fit its terms are kept from everybody, and by what."""
        if want.terms not in self._hindered:
            mine = self._accepts(want.terms)
            found = (o for uuid, o in self._obstacles.items() if uuid in mine)
            self._hindered[want.terms] = Counter(found)
        return self._hindered[want.terms]

    def ahead_of(self, want: Want) -> int:
        """How many of those who wait could use a device that `want` could use."""
        mine = self._accepts(want.terms)
        return sum(
            count
            for terms, count in self._waiting.items()
            if not mine.isdisjoint(self._accepted[terms])
        )

    def left(self, free: Mapping[HostId, Sequence[FreeDevice]]) -> dict[HostId, list[FreeDevice]]:
        """What nobody in line keeps from those behind."""
        return {
            host: [d for d in devices if d.uuid not in self._kept]
            for host, devices in free.items()
            if devices
        }

    def _accepts(self, terms: Terms) -> frozenset[DeviceUuid]:
        if terms not in self._accepted:
            self._accepted[terms] = frozenset(
                uuid
                for uuid, (host, device) in self._capacity.items()
                if terms.accept(host, device)
            )
        return self._accepted[terms]
