"""Devices that bookings keep, as whoever plays the pool forward sees them: held until they close.

For `estimates`. A claim of the very queue that booked is foreseen too late by this; where it could
start on what is kept, the pass has let it.
"""

from collections.abc import Iterator

from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.rules import SurplusOrder

from .clearing import clear_for
from .kept import Kept, Reservation
from .ledger import Ledger, Member
from .outlook import Keeping
from .pool_view import ClaimView


def kept_by_bookings(ledger: Ledger) -> Kept:
    """Hide what is kept for bookings whose windows are open, or open soon."""
    kept = Kept(ledger)
    if ledger.rules.surplus_order is SurplusOrder.FAIR_SHARE:
        clear_for(ledger, ledger.bookings, kept)
    return kept


def holding(ledger: Ledger, kept: Kept) -> Iterator[tuple[float, Member]]:
    """What is hidden, as if claims held it, with the moment when they give it back."""
    for reservation in kept.reservations:
        until_s = _closes_s(ledger, reservation)
        yield from ((until_s, _as_member(keeping)) for keeping in reservation.hidden)


def _closes_s(ledger: Ledger, reservation: Reservation) -> float:
    opens_s = reservation.gap.start_s
    return max(
        booking.until_s
        for booking in ledger.bookings
        if ledger.number.get(booking.queue) == reservation.queue
        and (booking.from_s == opens_s or booking.is_open(ledger.now_s))
    )


def _as_member(keeping: Keeping) -> Member:
    view = ClaimView(id=ClaimId(""), owner=UserName(""), queue="", worker=keeping.worker)
    return Member(view, -1, (), (), (), "", -1, [keeping.spot])
