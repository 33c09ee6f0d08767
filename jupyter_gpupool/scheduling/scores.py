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


_UNKNOWN = Cost(0, opens=False, free=-1, left=-1)
"""Stands for a cost not asked for yet, for None is one: it does not fit."""


class Change(NamedTuple):
    """A bay that has come from one state to another, as numbers: they are compared all the time."""

    bay: int
    before: int
    after: int


class Ranking:
    """The bays in which a worker of one shape fits, cheapest first."""

    def __init__(
        self, price: Callable[[int], Cost | None], bays: dict[int, int], seen: int
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
        # States by number, and the bays in each; numbers stay, whatever comes and goes.
        self._keys: list[Key] = []
        self._numbers: dict[Key, int] = {}
        self._bays: dict[int, int] = {}
        self._at: dict[int, int] = {}
        for host, state in enumerate(self._states):
            for place, bay in enumerate(bays_of[host]):
                number = self._at[bay] = self._number_of((state, place))
                self._bays[number] = self._bays.get(number, 0) | 1 << bay
        self._touched: list[int] = []
        self._log: list[Change] = []
        self._rankings: dict[tuple[WorkerShape, bool], Ranking] = {}

    def _number_of(self, key: Key) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return number

    def copy(self, state_of: Callable[[int], HostState]) -> "Scores":
        """Give scores that follow other books, which are as these are now."""
        other = object.__new__(Scores)
        other.__dict__ |= self.__dict__
        other._state_of, other._rankings, other._log = state_of, {}, []
        other._states, other._bays, other._at = list(self._states), dict(self._bays), dict(self._at)
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
            price = self._priced(prices_of(self._measure, *key))
            self._rankings[key] = ranking = Ranking(price, self._bays, len(self._log))
        ranking.follow(self._log)
        return ranking

    def _priced(self, prices: Callable[[Key], Cost | None]) -> Callable[[int], Cost | None]:
        """Costs by the numbers of states, each asked for once."""
        keys, known = self._keys, dict[int, Cost | None]()

        def price(number: int) -> Cost | None:
            cost = known.get(number, _UNKNOWN)
            if cost is _UNKNOWN:
                cost = known[number] = prices(keys[number])
            return cost

        return price

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
                self._enter(host, after)
        self._touched.clear()

    def _enter(self, host: int, state: HostState) -> None:
        for place, bay in enumerate(self._bays_of[host]):
            old, new = self._at[bay], self._number_of((state, place))
            left = self._bays[old] ^ 1 << bay
            if left:
                self._bays[old] = left
            else:
                del self._bays[old]
            self._at[bay] = new
            self._bays[new] = self._bays.get(new, 0) | 1 << bay
            self._log.append(Change(bay, old, new))
