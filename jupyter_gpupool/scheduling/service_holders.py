"""Who holds what under least attained service, and how much of it could be asked for at most.

The bound is what makes a pass fast: while a pool is full of claims that keep what they have, a
group that waits is passed over after a few additions.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .ledger import Ledger
from .served import Served

if TYPE_CHECKING:
    from jupyter_gpupool.pool.ids import ClaimId


class ServiceHolders:
    """The claims that hold devices, by bay, and what may be asked of them by queue and level.

    Attributes:
        in_bay: By the number of a bay, those who hold anything there.
        open_in: By the number of a bay, the devices there that may be asked of claims of a level
            or above it.
        may_shrink: How many of those who may be asked have more than their minimum.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._levels = len(ledger.rules.levels) + 1
        self.may_shrink = 0
        self.in_bay: list[dict[ClaimId, Served]] = [{} for _ in ledger.inventory.bays]
        self.open_in = [[0] * (self._levels + 1) for _ in ledger.inventory.bays]
        tops = [number for number, parent in enumerate(ledger.parent) if parent < 0]
        # One number more than there are levels, for "above the highest".
        self._open = {top: [0] * (self._levels + 1) for top in tops}
        self._counted = {top: [0] * (self._levels + 1) for top in tops}
        self._spare = [0] * (self._levels + 1)

    def enter(self, served: Served, now_s: float) -> None:
        """Count what a claim holds now."""
        for spot in served.member.spots:
            self.in_bay[spot.bay][served.member.view.id] = served
        served.is_open = served.may_be_asked(now_s, self._ledger.rules)
        if served.is_open:
            self._add(served, 1)
        self._count(served.top)

    def leave(self, served: Served) -> None:
        """Count a claim no more; before what it holds, or its level, changes."""
        for spot in served.member.spots:
            self.in_bay[spot.bay].pop(served.member.view.id, None)
        if served.is_open:
            self._add(served, -1)
            served.is_open = False

    def _add(self, served: Served, sign: int) -> None:
        upto, above = range(served.level + 1), self._open[served.top]
        thousandths = sign * served.thousandths
        self.may_shrink += sign * bool(served.member.surplus)
        for level in upto:
            above[level] += thousandths
        for spot in served.member.spots:
            here, devices = self.open_in[spot.bay], sign * spot.devices.bit_count()
            for level in upto:
                here[level] += devices

    def _count(self, top: int) -> None:
        """Count anew what others may ask of a queue: no more than it holds beyond its guarantee."""
        beyond = max(0, self._ledger.held[top][0] - self._ledger.guarantee[top][0])
        counted, spare = self._counted[top], self._spare
        for level, thousandths in enumerate(self._open[top]):
            new = min(beyond, thousandths)
            spare[level] += new - counted[level]
            counted[level] = new

    def at_most(self, path: Sequence[int], level: int, thousandths: int) -> int:
        """Thousandths of devices that others could give a claim, at the very most.

        Args:
            path: Its queue and those above it.
            level: Its own.
            thousandths: What it needs: inside a guarantee it may ask all levels of others.
        """
        top, above = path[-1], level + 1
        others = 0 if self._is_inside(top, thousandths) else above
        own = 0 if any(self._is_inside(queue, thousandths) for queue in path[:-1]) else above
        return self._spare[others] - self._counted[top][others] + self._open[top][own]

    def _is_inside(self, queue: int, thousandths: int) -> bool:
        ledger = self._ledger
        return ledger.held[queue][0] + thousandths <= ledger.guarantee[queue][0]

    def beyond_guarantee(self) -> Mapping[int, int]:
        """What the queues at the top hold beyond their guarantees, of those who may give at all."""
        held, guarantee = self._ledger.held, self._ledger.guarantee
        return {
            top: held[top][0] - guarantee[top][0]
            for top, counted in self._counted.items()
            if counted[0]
        }

    def changed(self, top: int) -> None:
        """What a queue holds has changed."""
        self._count(top)
