"""Devices booked for a queue in a time window: a class on Tuesday from ten to twelve.

A booking raises the guarantee of its queue, and of all above it, while its window lasts; the pass
does the rest. It is refused if guarantees and bookings would exceed the pool at any moment. How
the devices are emptied in time is in `clearing`.
"""

from collections.abc import Iterable, Iterator, Sequence
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
        devices: Whole ones, of any model, beside what the queue is guaranteed anyway.
        from_s: When the window opens, on the axis of every view.
        until_s: When it closes.
    """

    id: str
    queue: str
    devices: int
    from_s: float
    until_s: float

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
    others = max(_at_once(kept, moment) for moment in _moments(kept, new))
    if guaranteed + others + new.devices > has:
        there = f"guarantees take {guaranteed} and other reservations {others}"
        raise BadRequest(
            f"{plural(new.devices, 'device')} cannot be reserved: of {has} in the pool {there}.",
            field="devices",
            hint=f"At most {max(0, has - guaranteed - others)} can be reserved in that window.",
        )
    return tuple(sorted((*kept, new), key=lambda booking: (booking.from_s, booking.id)))


def moments_of(booking: Booking) -> tuple[float, float, float]:
    """When a booking begins to be cleared for, opens and closes: when a pass has to look at it."""
    return booking.from_s - LEAD_S, booking.from_s, booking.until_s


def tree_at(tree: QueueTree, bookings: Iterable[Booking], now_s: float) -> QueueTree:
    """The tree with the guarantees that bookings raise at a moment; the same if none does.

    A limit rises with the guarantee: what is booked comes on top. A booking whose queue the policy
    no longer has is left out.
    """
    raised: dict[str, int] = {}
    for booking in bookings:
        if booking.is_open(now_s) and booking.queue in tree.queues:
            for name in tree.path(booking.queue):
                raised[name] = raised.get(name, 0) + booking.devices * WHOLE_DEVICE
    if not raised:
        return tree
    queues = (_raised(queue, raised.get(name, 0)) for name, queue in tree.queues.items())
    return link(tree.kinds, queues)


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


def _at_once(booked: Iterable[Booking], moment_s: float) -> int:
    return sum(booking.devices for booking in booked if booking.is_open(moment_s))
