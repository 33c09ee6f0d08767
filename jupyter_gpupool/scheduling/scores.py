"""Which bays cost a worker least, kept up to date change by change.

For each shape that asks, bays are bits of one whole number per cost, as free devices are in the
inventory. A change of the books touches one host; only its bays are looked at again.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .bits import lowest
from .fragmentation import Fragmentation, HostState
from .prices import Cost, Key, prices_of
from .shape import WorkerShape
from .workload import plainly

_LONGEST_LOG = 100_000


class Change(NamedTuple):
    """A bay that has come from one state to another."""

    bay: int
    before: Key
    after: Key


class Ranking:
    """The bays in which a worker of one shape fits, cheapest first."""

    def __init__(
        self, price: Callable[[Key], Cost | None], bays: dict[Key, int], seen: int
    ) -> None:
        self._price = price
        self._by_cost: dict[Cost, int] = {}
        self._order: list[Cost] = []
        self._seen = seen
        for key, found in bays.items():
            cost = price(key)
            if cost is not None and found:
                self._by_cost[cost] = self._by_cost.get(cost, 0) | found
        self._order = sorted(self._by_cost)

    def __iter__(self) -> Iterator[tuple[Cost, int]]:
        """Each cost with the bits of the bays that have it, the least first."""
        return ((cost, self._by_cost[cost]) for cost in self._order)

    def cheapest(self, among: int) -> tuple[Cost, int] | None:
        """The least cost among some bays, with the bits of those that have it."""
        by_cost = self._by_cost
        for cost in self._order:
            if found := by_cost[cost] & among:
                return cost, found
        return None

    def follow(self, log: Sequence[Change]) -> None:
        """Enter all that has changed since it was asked last."""
        for change in log[self._seen :]:
            before, after = self._price(change.before), self._price(change.after)
            if before != after:
                self._remove(before, 1 << change.bay)
                self._add(after, 1 << change.bay)
        self._seen = len(log)

    def _remove(self, cost: Cost | None, bay: int) -> None:
        if cost is None:
            return
        left = self._by_cost[cost] ^ bay
        if left:
            self._by_cost[cost] = left
        else:
            del self._by_cost[cost], self._order[bisect_left(self._order, cost)]

    def _add(self, cost: Cost | None, bay: int) -> None:
        if cost is None:
            return
        if cost not in self._by_cost:
            insort(self._order, cost)
        self._by_cost[cost] = self._by_cost.get(cost, 0) | bay


class Scores:
    """The states of all hosts, and a ranking for each shape that has asked.

    Args:
        measure: By what costs are measured.
        bays_of: The bays of each host.
        state_of: Tells the state of a host now, by its number.
    """

    def __init__(
        self,
        measure: Fragmentation,
        bays_of: Sequence[tuple[int, ...]],
        state_of: Callable[[int], HostState],
    ) -> None:
        self._measure = measure
        self._bays_of = bays_of
        self._state_of = state_of
        self._states = [state_of(host) for host in range(len(bays_of))]
        self._bays: dict[Key, int] = {}
        for host, state in enumerate(self._states):
            for place, bay in enumerate(bays_of[host]):
                self._bays[state, place] = self._bays.get((state, place), 0) | 1 << bay
        self._touched: list[int] = []
        self._log: list[Change] = []
        self._rankings: dict[tuple[WorkerShape, bool], Ranking] = {}

    def copy(self, state_of: Callable[[int], HostState]) -> "Scores":
        """Give scores that follow other books, which are as these are now."""
        other = object.__new__(Scores)
        other.__dict__ |= self.__dict__
        other._state_of, other._rankings, other._log = state_of, {}, []
        other._states, other._bays = list(self._states), dict(self._bays)
        other._touched = list(self._touched)
        return other

    def touch(self, host: int) -> None:
        """Something on this host may have changed."""
        self._touched.append(host)

    def ranking(self, shape: WorkerShape, *, shared: bool = False) -> Ranking:
        """The bays for a worker as they are now; `shared` as in `Prices`."""
        self._catch_up()
        key = (plainly(shape), shared)
        ranking = self._rankings.get(key)
        if ranking is None:
            prices = prices_of(self._measure, *key)
            self._rankings[key] = ranking = Ranking(prices, self._bays, len(self._log))
        ranking.follow(self._log)
        return ranking

    def roomiest(self, among: int, room: Callable[[int], int]) -> int:
        """The most that `room` says of any of these bays; bays of one state are asked once."""
        self._catch_up()
        found = (bays & among for bays in self._bays.values())
        return max((room(lowest(bays)) for bays in found if bays), default=0)

    def _catch_up(self) -> None:
        """Look again at every host that was touched."""
        if len(self._log) > _LONGEST_LOG:
            self._log.clear()
            self._rankings.clear()
        for host in sorted(set(self._touched)):
            before, after = self._states[host], self._state_of(host)
            if before != after:
                self._states[host] = after
                self._enter(host, before, after)
        self._touched.clear()

    def _enter(self, host: int, before: HostState, after: HostState) -> None:
        for place, bay in enumerate(self._bays_of[host]):
            old, new = (before, place), (after, place)
            left = self._bays[old] ^ 1 << bay
            if left:
                self._bays[old] = left
            else:
                del self._bays[old]
            self._bays[new] = self._bays.get(new, 0) | 1 << bay
            self._log.append(Change(bay, old, new))
