"""What a claim would like of where its workers go, apart from what they need.

Made by `spots.place` for each claim that it looks at. In this order: hosts where the claim has
workers already, hosts near its data, racks where it has workers.
"""

from typing import NamedTuple

from .bits import lowest
from .inventory import Inventory
from .ledger import Member
from .prices import Cost
from .scores import Ranking
from .shape import WorkerShape


class Wish(NamedTuple):
    """The workers of a claim, and where it would have them.

    Attributes:
        sharer: With whom it may share a device.
        among: Bits of the bays that may serve it.
        own: Bits of the bays on hosts where it has workers.
        data: Bits of the bays on hosts near its data.
        racks: Bits of the bays in racks where it has workers.
    """

    shape: WorkerShape
    sharer: str
    among: int
    own: int = 0
    data: int = 0
    racks: int = 0

    def tiers(self) -> tuple[int, ...]:
        """The bays that may serve it, the set that it would like best first."""
        if not self.own and not self.data:
            return (self.among,)
        return tuple(filter(None, (self.among & self.own, self.among & self.data, self.among)))

    def preferred(self, bays: int) -> int:
        """Those of these bays that it would rather have, or all if it has no wish."""
        return bays & self.own or bays & self.data or bays

    def one_of(self, bays: int) -> int:
        """One of these bays, in a rack where it has workers if there is one."""
        return lowest(bays & self.racks or bays)

    def cheapest(self, ranking: Ranking) -> tuple[Cost, int] | None:
        """The bay that costs least, and its cost, in the best of its tiers that has one."""
        for tier in self.tiers():
            if found := ranking.cheapest(tier):
                return found[0], self.one_of(found[1])
        return None

    def with_workers_in(self, inventory: Inventory, bay: int) -> "Wish":
        """The same wish once the claim has workers in this bay."""
        host = inventory.hosts[inventory.bays[bay].host]
        own = self.own | inventory.layout.bays_on(host.id)
        return self._replace(own=own, racks=self.racks | inventory.neighbours(bay))


def wish_of(inventory: Inventory, member: Member) -> Wish:
    """What a claim would like, by its data and by the workers that it has."""
    view, data = member.view, 0
    for host_id in view.near:
        data |= inventory.layout.bays_on(host_id)
    wish = Wish(view.worker, member.sharer, inventory.accepting(view.worker), data=data)
    for bay in sorted({spot.bay for spot in member.spots}):
        wish = wish.with_workers_in(inventory, bay)
    return wish
