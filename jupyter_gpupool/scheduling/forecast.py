"""Who will start when, if everything takes as long as is thought: the pool played forward.

For `estimates`, apart from any pass. Claims end in order of time; whenever some have, those that
wait are tried in the order in which a pass would serve them, of each shape only the first few, for
whoever is behind them needs as much. Neither reclaim nor what may still arrive is foreseen.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from math import ceil, log

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.rules import SurplusOrder

from .bits import first, lowest
from .bounds import stops
from .inventory import Spot
from .ledger import Ledger, Member
from .pool_view import ClaimView
from .shape import WorkerShape
from .spots import place
from .waiting_line import Line

EXACT_CLAIMS = 400
"""Up to how many claims every end is a moment of its own; beyond, they are gathered."""

STEP = 1.05
"""How much later, counted from now, the next moment is that ends are gathered to."""

FIRST_STEP_S = 30.0
"""When, counted from now, gathering begins."""

MOST_PASSED_OVER = 32
"""How many of one shape are tried in vain at one moment, for limits of their queues."""

EndsAt = Callable[[ClaimView, float], float]
"""When a claim that holds devices, or starts at the given moment, is taken to end."""


@dataclass(slots=True)
class _Play:
    """The pool at some moment to come.

    Attributes:
        lines: Who waits, by what it needs, in the order of service.
        ends: When whoever holds devices gives them back.
    """

    ledger: Ledger
    ends_at: EndsAt
    place: Callable[[Ledger, Member, int], Sequence[Spot]]
    moment_of: Callable[[float], float]
    lines: dict[tuple[WorkerShape, int], deque[tuple[int, Member]]] = field(default_factory=dict)
    ends: list[tuple[float, int, Member]] = field(default_factory=list)
    serial: Iterator[int] = field(default_factory=count)
    starts: dict[ClaimId, float] = field(default_factory=dict)


def starts_of(
    ledger: Ledger,
    order: Sequence[ClaimId],
    ends_at: EndsAt,
    booked: Iterable[tuple[float, Member]] = (),
) -> dict[ClaimId, float]:
    """Foresee when each claim that waits for its minimum will start.

    Args:
        ledger: The books. They are used up, for the way back would cost as
            much as new ones.
        order: The claims that wait, in the order of service.
        ends_at: How long things are taken to last.
        booked: What is hidden in the books until a moment; see `booked.holding`.

    Returns:
        The moments, on the axis of the view; whoever never starts is missing.
    """
    play = _begin(ledger, order, ends_at)
    for until_s, member in booked:
        heappush(play.ends, (play.moment_of(until_s), next(play.serial), member))
    _start_all(play, ledger.now_s)
    while play.ends and any(play.lines.values()):
        now_s = play.ends[0][0]
        while play.ends and play.ends[0][0] <= now_s:
            member = heappop(play.ends)[2]
            _end(ledger, member)
        _start_all(play, now_s)
    return play.starts


def _begin(ledger: Ledger, order: Sequence[ClaimId], ends_at: EndsAt) -> _Play:
    if len(ledger.members) <= EXACT_CLAIMS:
        play = _Play(ledger, ends_at, _as_a_pass, _exactly)
    else:
        play = _Play(ledger, ends_at, _roughly, _gathered(ledger.now_s))
    for member in ledger.members.values():
        if member.promised:
            play.starts[member.view.id] = ledger.now_s
        if member.spots:
            ends_s = play.moment_of(ends_at(member.view, ledger.now_s))
            play.ends.append((ends_s, next(play.serial), member))
    heapify(play.ends)
    for place_in_line, claim_id in enumerate(order):
        member = ledger.members[claim_id]
        line = play.lines.setdefault((member.view.worker, member.needs), deque())
        line.append((place_in_line, member))
    return play


def order_of_service(ledger: Ledger) -> list[ClaimId]:
    """The order in which a pass would serve whoever lacks its minimum, with room for all."""
    waiting = [m for m in ledger.members.values() if m.has < m.view.minimum and not m.promised]
    if ledger.rules.surplus_order is SurplusOrder.LEAST_ATTAINED_SERVICE:
        waiting.sort(key=lambda member: _attained(ledger, member))
        return [member.view.id for member in waiting]
    line, order = Line(ledger, waiting), list[Member]()
    while (leaf := line.leaf()) is not None:
        member = line.first(leaf)
        assert member is not None
        line.leave(leaf)
        # What was served counts for the turn of the next one.
        _count(ledger, member, member.needs)
        order.append(member)
        line.refresh(leaf)
    for member in order:
        _count(ledger, member, -member.needs)
    return [member.view.id for member in order]


def _attained(ledger: Ledger, member: Member) -> tuple[int, float, ClaimId]:
    level = sum(member.view.attained_s >= least for least in ledger.rules.levels)
    return level, member.view.since_s, member.view.id


def _start(ledger: Ledger, member: Member, spots: Sequence[Spot]) -> None:
    for shape, spot in _by_bay(member.view.worker, spots):
        ledger.inventory.take(shape, spot, member.sharer)
    member.spots += spots
    _count(ledger, member, len(spots))


def _end(ledger: Ledger, member: Member) -> None:
    for shape, spot in _by_bay(member.view.worker, member.spots):
        ledger.inventory.give(shape, spot)
    _count(ledger, member, -len(member.spots))
    member.spots.clear()


def _by_bay(worker: WorkerShape, spots: Sequence[Spot]) -> Iterator[tuple[WorkerShape, Spot]]:
    """What workers hold together on each bay, which costs as little as what one holds."""
    if worker.share or not worker.devices or len(spots) == 1:
        yield from ((worker, spot) for spot in spots)
        return
    together: dict[int, tuple[int, int]] = {}
    for spot in spots:
        devices, workers = together.get(spot.bay, (0, 0))
        together[spot.bay] = devices | spot.devices, workers + 1
    for bay, (devices, workers) in together.items():
        cpu, memory_bytes = worker.cpu * workers, worker.memory_bytes * workers
        yield WorkerShape(cpu=cpu, memory_bytes=memory_bytes), Spot(bay, devices)


def _count(ledger: Ledger, member: Member, workers: int) -> None:
    for queue in member.path:
        held = ledger.held[queue]
        for kind, amount in enumerate(member.each):
            held[kind] += amount * workers


def _start_all(play: _Play, now_s: float) -> None:
    """Start whoever fits, in order; of each shape until one does not fit."""
    heads = [(line[0][0], key) for key, line in play.lines.items() if line]
    # Shapes do not compare: orders are unique, so they need not.
    heapify(heads)
    while heads:
        _, key = heappop(heads)
        if _start_first(play, key, now_s) and (line := play.lines[key]):
            heappush(heads, (line[0][0], key))


def _start_first(play: _Play, key: tuple[WorkerShape, int], now_s: float) -> bool:
    """Start the first claim of a shape that its queues' limits let start, if there is room."""
    ledger, line = play.ledger, play.lines[key]
    for at in range(min(len(line), MOST_PASSED_OVER)):
        member = line[at][1]
        if stops(ledger, member, member.needs) is not None:
            continue
        if not _might_fit(ledger, *key):
            return False
        spots = play.place(ledger, member, member.needs)
        if not spots:
            return False
        _start(ledger, member, spots)
        del line[at]
        play.starts[member.view.id] = now_s
        ends_s = play.moment_of(play.ends_at(member.view, now_s))
        heappush(play.ends, (max(now_s, ends_s), next(play.serial), member))
        return True
    return False


def _might_fit(ledger: Ledger, shape: WorkerShape, workers: int) -> bool:
    """Whether enough hosts have enough devices free, seen at a glance."""
    if not shape.devices:
        return True
    inventory, room = ledger.inventory, 0
    accepted = inventory.accepting(shape)
    for free in range(shape.devices, len(inventory.by_free)):
        if here := inventory.by_free[free] & accepted:
            room += here.bit_count() * (free // shape.devices)
            if room >= workers:
                return True
    return False


def _as_a_pass(ledger: Ledger, member: Member, workers: int) -> Sequence[Spot]:
    return place(ledger, member, workers, workers)


def _roughly(ledger: Ledger, member: Member, workers: int) -> Sequence[Spot]:
    """Place a gang by best fit alone: which devices, and in which rack, decides no start."""
    inventory, shape = ledger.inventory, member.view.worker
    if not shape.devices or shape.cpu or shape.memory_bytes or shape.spread:
        return place(ledger, member, workers, workers)
    found: list[Spot] = []
    accepted, by_free = inventory.accepting(shape), inventory.by_free
    while left := workers - len(found):
        bay = _best_bay(by_free, accepted, left * shape.devices, shape.devices)
        if bay is None:
            return ()
        accepted &= ~(1 << bay)
        whole = inventory.bays[bay].whole
        for _ in range(min(left, whole.bit_count() // shape.devices)):
            devices = first(whole, shape.devices)
            whole &= ~devices
            found.append(Spot(bay, devices))
    return found


def _best_bay(by_free: Sequence[int], accepted: int, wanted: int, each: int) -> int | None:
    """The fullest bay that holds all that is wanted, else the emptiest one."""
    for free in (
        *range(wanted, len(by_free)),
        *range(min(wanted, len(by_free)) - 1, each - 1, -1),
    ):
        if here := by_free[free] & accepted:
            return lowest(here)
    return None


def _exactly(moment_s: float) -> float:
    return moment_s


def _gathered(now_s: float) -> Callable[[float], float]:
    """Moments of a grid that widens with time: nobody can tell minutes days ahead."""

    def moment_of(moment_s: float) -> float:
        ahead_s = max(moment_s - now_s, FIRST_STEP_S)
        return now_s + FIRST_STEP_S * STEP ** ceil(log(ahead_s / FIRST_STEP_S, STEP))

    return moment_of
