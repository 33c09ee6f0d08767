"""What another policy means for reservations that are booked, in sentences for its admin: pure.

Part of `policy_effects`.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import plural
from jupyter_gpupool.scheduling.queues import QueueTree
from jupyter_gpupool.scheduling.reservations import Booking, book

from .in_force import PolicyInForce
from .policy_tree import capacity_of
from .reserving import bookings_of
from .standing import View


def effects_on_reservations(
    view: View, before: PolicyInForce, after: PolicyInForce, now_s: float
) -> Iterator[str]:
    """Those that are void, or no longer fit, if one policy follows the other now."""
    booked = [each for each in bookings_of(view.reservations.values()) if each.until_s > now_s]
    for booking in booked:
        others = [each for each in booked if each.id != booking.id]
        fits = partial(_can_book, view, booking, others, now_s)
        if booking.queue not in before.tree.queues:
            continue
        named = f"Reservation {booking.id} of {plural(booking.devices, 'device')}"
        if booking.queue not in after.tree.queues:
            yield f"{named} is for queue {booking.queue}, which is gone: nothing is kept for it."
        elif fits(before.tree) and not fits(after.tree):
            yield (
                f"{named} for queue {booking.queue} is more than the guarantees leave: it may not"
                " get all of them."
            )


def _can_book(
    view: View, booking: Booking, others: Sequence[Booking], now_s: float, tree: QueueTree
) -> bool:
    try:
        book(tree, capacity_of(tree, view.hosts.values()), others, booking, now_s)
    except BadRequest:
        return False
    return True
