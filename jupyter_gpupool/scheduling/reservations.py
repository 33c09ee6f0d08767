"""Devices booked for a queue in a time window: a class on Tuesday from ten to twelve.

While its window lasts, what a queue is guaranteed anyway is part of what it has booked: only what
it has booked beyond that raises its guarantee, and that of all above it; the pass does the rest. A
booking is refused if guarantees and what is booked beyond them would exceed the pool at any moment.
How the devices are emptied in time is in `clearing`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import plural

from .amounts import NO_LIMIT, WHOLE_DEVICE, Amount, add
from .queues import Queue, QueueTree, link

LEAD_S = 900.0
"""How long before its window a booking starts to have its devices emptied: the longest notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """Devices for one queue in one window.

    Attributes:
        id: Its name.
        devices: Whole ones, of any model; those that the queue is guaranteed are among them.
        from_s: When the window opens, on the axis of every view.
        until_s: When it closes.
        words: For whom and until when, as people read it; "" is its queue.
    """

    id: str
    queue: str
    devices: int
    from_s: float
    until_s: float
    words: str = ""

    def is_open(self, now_s: float) -> bool:
        """Whether a moment is in the window."""
        return self.from_s <= now_s < self.until_s


def book(
    tree: QueueTree, capacity: Amount, booked: Sequence[Booking], new: Booking, now_s: float
) -> tuple[Booking, ...]:
    """Add a booking to those there are, in order of their windows.

    Args:
        tree: The policy's queues.
        capacity: What the pool can lease.
        booked: All bookings so far; those that are over count no more.
        new: The one to add.
        now_s: The present.

    Raises:
        BadRequest: It makes no sense, or guarantees and bookings would be more than the pool has.
    """
    _check_terms(tree, booked, new, now_s)
    kept = [booking for booking in booked if booking.until_s > now_s]
    guaranteed, has = _guaranteed(tree, capacity), capacity[0] // WHOLE_DEVICE
    at_once = ([b for b in kept if b.is_open(moment)] for moment in _moments(kept, new))
    most, others = min(_room(tree, beside, new, has - guaranteed) for beside in at_once)
    if new.devices > most:
        there = f"guarantees take {guaranteed} and other reservations {others}"
        raise BadRequest(
            f"{plural(new.devices, 'device')} cannot be reserved: of {has} in the pool {there}.",
            field="devices",
            hint=f"At most {most} can be reserved in that window.",
        )
    return tuple(sorted((*kept, new), key=lambda booking: (booking.from_s, booking.id)))


def moments_of(booking: Booking) -> tuple[float, float, float]:
    """When a booking begins to be cleared for, opens and closes: when a pass has to look at it."""
    return booking.from_s - LEAD_S, booking.from_s, booking.until_s


def tree_at(tree: QueueTree, bookings: Iterable[Booking], now_s: float) -> QueueTree:
    """The tree with the guarantees that bookings raise at a moment; the same if none does.

    A limit rises with the guarantee: what is booked beyond that comes on top. A booking whose queue
    the policy no longer has is left out.
    """
    raised: Counter[str] = Counter()
    are_open = (booking for booking in bookings if booking.is_open(now_s))
    for queue, devices in _beyond_own(tree, are_open).items():
        for name in tree.path(queue):
            raised[name] += devices * WHOLE_DEVICE
    if not any(raised.values()):
        return tree
    queues = (_raised(queue, raised.get(name, 0)) for name, queue in tree.queues.items())
    return link(tree.kinds, queues)


def is_near(booking: Booking, now_s: float) -> bool:
    """Whether devices are kept for it: its window is open, or opens soon."""
    return booking.from_s - LEAD_S <= now_s < booking.until_s


def _beyond_own(tree: QueueTree, bookings: Iterable[Booking]) -> Mapping[str, int]:
    """What each queue has booked at once beyond what it is guaranteed itself, in whole devices."""
    booked: Counter[str] = Counter()
    for booking in bookings:
        if booking.queue in tree.queues:
            booked[booking.queue] += booking.devices
    return {name: max(0, n - _guaranteed_itself(tree, name)) for name, n in booked.items()}


def _room(
    tree: QueueTree, beside: Sequence[Booking], new: Booking, unguaranteed: int
) -> tuple[int, int]:
    """How much can be booked beside others, and how much those take beyond their guarantees."""
    taken = sum(booking.devices for booking in beside if booking.queue == new.queue)
    own_left = max(0, _guaranteed_itself(tree, new.queue) - taken)
    others = sum(_beyond_own(tree, beside).values())
    return own_left + max(0, unguaranteed - others), others


def _guaranteed_itself(tree: QueueTree, queue: str) -> int:
    return tree.queues[queue].guarantee[0] // WHOLE_DEVICE


def _raised(queue: Queue, thousandths: int) -> Queue:
    if not thousandths:
        return queue
    more = (thousandths,) + (0,) * (len(queue.guarantee) - 1)
    return replace(
        queue,
        guarantee=_up_to_no_limit(add(queue.guarantee, more)),
        limit=_up_to_no_limit(add(queue.limit, more)),
    )


def _up_to_no_limit(amount: Amount) -> Amount:
    return tuple(min(value, NO_LIMIT) for value in amount)


def _check_terms(tree: QueueTree, booked: Sequence[Booking], new: Booking, now_s: float) -> None:
    if new.queue not in tree.queues:
        raise BadRequest(f'There is no queue "{new.queue}".', field="queue")
    if any(booking.id == new.id for booking in booked):
        raise BadRequest(f'There is already a reservation "{new.id}".', field="id")
    if new.devices < 1:
        raise BadRequest(f"{new.devices} devices cannot be reserved.", field="devices")
    if not new.from_s < new.until_s:
        raise BadRequest("The reservation ends before it begins.", field="ends")
    if new.until_s <= now_s:
        raise BadRequest("The reservation is over already.", field="ends")


def _guaranteed(tree: QueueTree, capacity: Amount) -> int:
    """Whole devices that the queues at the top are guaranteed together, rounded up."""
    total = sum(min(tree.queues[name].guarantee[0], capacity[0]) for name in tree.children[None])
    return -(-total // WHOLE_DEVICE)


def _moments(booked: Iterable[Booking], new: Booking) -> Iterator[float]:
    """When bookings within the window are most: as it opens, and as others open."""
    yield new.from_s
    yield from (b.from_s for b in booked if new.from_s < b.from_s < new.until_s)
