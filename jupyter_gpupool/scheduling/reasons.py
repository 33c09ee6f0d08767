"""Why each claim waits, in one sentence, from what it met when its turn came in the pass.

Made by `rounds.decide` at its end. Claims with equal shapes see the same devices, so what is
counted is counted once for all of them: thousands in line cost little.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from jupyter_gpupool.pool.units import format_bytes, plural

from .amounts import NO_LIMIT, WHOLE_DEVICE
from .bounds import Hindrance
from .bounds_wording import at_guarantee, at_limit
from .counting import Counting, Gang
from .decisions import Constraint, Waiting
from .ledger import Ledger, Member
from .moving import Untaken
from .reservations import is_near
from .shape import Obstacle, WorkerShape

_OBSTACLES = {
    Obstacle.ELSEWHERE: "held by another pool on the host",
    Obstacle.FOREIGN: "in use outside the pool",
    Obstacle.QUARANTINED: "quarantined",
    Obstacle.FREEING: "still being freed",
    Obstacle.HOST: "on a host that takes nothing more now",
}

_MOST_MODELS = 5


class _Seen(NamedTuple):
    """The pool as one shape sees it.

    Attributes:
        bays: Bits of the bays that it accepts.
        free: Workers of it that would fit on what is free, counted host by host.
        largest: The largest gang of it that the empty pool could serve.
        obstacles: What keeps devices that would do, in words; "" if nothing does.
    """

    bays: int
    free: int
    largest: Gang
    obstacles: str


def reasons(ledger: Ledger, hindered: Iterable[Hindrance]) -> tuple[Waiting, ...]:
    """Say why each of these waits; they are given in the order of the line."""
    telling = _Telling(ledger)
    return tuple(map(telling.of, hindered))


class _Telling:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._counting = Counting(ledger.inventory)
        self._seen: dict[WorkerShape, _Seen] = {}
        self._ahead: Counter[int] = Counter()
        self._over = most_over(ledger)
        self._booked = tuple(_lacking_booked(ledger))
        self._untaken = Untaken(ledger)

    def of(self, hindrance: Hindrance) -> Waiting:
        member, constraint = hindrance.member, hindrance.constraint
        seen = self._see(member.view.worker)
        if seen.largest.workers < member.view.minimum:
            return self._waiting(member, Constraint.NEVER, self._never(member, seen), seen)
        moves = self._untaken.count_for(member) if constraint is Constraint.DEVICES else 0
        if constraint is Constraint.DEVICES and (moves or seen.free >= member.needs):
            constraint = Constraint.GANG
        reason = self._reason(hindrance, constraint, seen, moves)
        waiting = self._waiting(member, constraint, reason, seen)
        self._ahead[seen.bays] += 1
        return replace(waiting, moves=moves) if moves else waiting

    def _waiting(self, member: Member, constraint: Constraint, reason: str, seen: _Seen) -> Waiting:
        place = self._ahead_of(seen) + 1
        return Waiting(claim_id=member.view.id, place=place, constraint=constraint, reason=reason)

    def _ahead_of(self, seen: _Seen) -> int:
        # Those whom nothing serves now wait for the same.
        return sum(
            count for bays, count in self._ahead.items() if bays & seen.bays or bays == seen.bays
        )

    def _never(self, member: Member, seen: _Seen) -> str:
        told = (
            _too_many(member, seen.largest),
            _other_models(member.view.worker.model, self._counting.models),
            member.view.barred_why,
            "It starts when a host brings more.",
        )
        return " ".join(filter(None, told))

    def _reason(self, hindrance: Hindrance, constraint: Constraint, seen: _Seen, moves: int) -> str:
        member = hindrance.member
        match constraint:
            case Constraint.LIMIT:
                return at_limit(self._ledger, member, hindrance.queue)
            case Constraint.GUARANTEE:
                return at_guarantee(self._ledger, member, hindrance.queue)
            case _:
                return self._short(member, constraint, seen, moves)

    def _short(self, member: Member, constraint: Constraint, seen: _Seen, moves: int) -> str:
        ahead = self._ahead_of(seen)
        start = f"{plural(ahead, 'claim')} ahead; waiting" if ahead else "Waiting"
        needed, each = _lacks(member), max(1, member.view.worker.devices)
        lacking = needed if constraint is Constraint.GANG else needed - min(seen.free, needed)
        what = _described(member, needed * each)
        parts = [f"{start} for {lacking * each} of {what}" if lacking else f"{start} for {what}"]
        if constraint is Constraint.GANG:
            parts.append("enough are free, but not together")
        if moves:
            parts.append(f"it would fit if {plural(moves, 'claim')} moved")
        if constraint is Constraint.RESERVED:
            parts.append(f"what is free is kept for {self._keepers(member)}")
        parts += [part for part in (self._share_of_others(member), seen.obstacles) if part]
        return "; ".join(parts) + "."

    def _keepers(self, member: Member) -> str:
        """For whom devices are kept that a claim may not have."""
        mine = {self._ledger.names[queue] for queue in member.path}
        named = [words for queue, words in self._booked if queue not in mine]
        return " and ".join(named) or "others"

    def _share_of_others(self, member: Member) -> str:
        queue, above = self._over
        if queue < 0 or queue in member.path:
            return ""
        return f"{self._name(queue)} is over its share by {_devices(above)}"

    def _name(self, queue: int) -> str:
        return self._ledger.queues[queue].user or self._ledger.names[queue]

    def _see(self, shape: WorkerShape) -> _Seen:
        found = self._seen.get(shape)
        if found is None:
            counting = self._counting
            found = self._seen[shape] = _Seen(
                bays=self._ledger.inventory.accepting(shape),
                free=counting.free(shape),
                largest=counting.largest(shape),
                obstacles=obstacles_in_words(Counter(counting.obstacles(shape))),
            )
        return found


def _lacking_booked(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Queues that hold less than they have booked for now or soon, with the booking in words."""
    for booking in ledger.bookings:
        number = ledger.number.get(booking.queue)
        if number is None or not is_near(booking, ledger.now_s):
            continue
        if ledger.held[number][0] < booking.devices * WHOLE_DEVICE:
            yield booking.queue, booking.words or booking.queue


def most_over(ledger: Ledger) -> tuple[int, int]:
    """The queue that holds most devices beyond its share, and how many thousandths; -1 if none."""
    best = (-1, 0)
    for queue, held in enumerate(ledger.held):
        above = held[0] - ledger.allowed[queue][0]
        if above > best[1] and ledger.allowed[queue][0] < NO_LIMIT:
            best = (queue, above)
    return best


def obstacles_in_words(hindered: Mapping[Obstacle, int]) -> str:
    """What nobody in line can change, as part of a sentence; "" if there is no such thing."""
    told = (f"{hindered[o]} {words}" for o, words in _OBSTACLES.items() if hindered.get(o))
    return ", ".join(told)


def freeing(ledger: Ledger, member: Member) -> Waiting:
    """Say how far the devices are that a claim is promised."""
    ready = sum(map(ledger.inventory.is_open, member.promised))
    workers = plural(len(member.promised), "worker")
    reason = f"{ready} of its {workers} could start; the devices of the others are being freed."
    if not ready:
        reason = "Its devices are being freed for it."
    elif ready == len(member.promised):
        reason = "Its devices are free; it starts when those who make room for it have done so."
    return Waiting(claim_id=member.view.id, place=1, constraint=Constraint.FREEING, reason=reason)


def _lacks(member: Member) -> int:
    """Workers it waits for: the rest of its minimum, or all it would grow to."""
    lacking = member.view.minimum - member.has
    return lacking if lacking > 0 else member.view.maximum - member.has


def _too_many(member: Member, largest: Gang) -> str:
    each = max(1, member.view.worker.devices)
    what = _described(member, member.view.minimum * each)
    hosts = f" on {plural(largest.hosts, 'host')}" if largest.hosts > 1 else ""
    has = "would fit" if member.view.worker.share else "joined"
    return f"Not possible as the pool is: {what} wanted, {largest.workers * each} {has}{hosts}."


def _other_models(wanted: str, models: Sequence[str]) -> str:
    """What to ask for instead of a model that no device is of; "" if one is, or there is none."""
    if not models or any(wanted in model.lower() for model in models):
        return ""
    more = len(models) - _MOST_MODELS
    named = ", ".join(models[:_MOST_MODELS]) + (f" and {more} more" if more > 0 else "")
    return f"The pool's models: {named}."


def _described(member: Member, count: int) -> str:
    shape = member.view.worker
    model = f"{shape.model} " if shape.model else ""
    least = shape.device_memory_bytes
    memory = f" with {format_bytes(least)}" if least else ""
    if shape.share:
        each = f"{shape.share / WHOLE_DEVICE:g} of a {model}device{memory}"
        return f"{plural(count, 'part')} ({each})"
    return plural(count, f"{model}device") + memory


def _devices(thousandths: int) -> str:
    return f"{thousandths / WHOLE_DEVICE:g}"
