"""Booking devices for a queue in a window, and giving a booking up.

Called through `Service.execute`. What a booking changes is the pass's to say: `scheduling.
reservations` and `clearing`.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from jupyter_gpupool.manager.auth.caller import Caller, no_such
from jupyter_gpupool.pool.errors import BadRequest, NotAllowed
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.reservation import Reservation
from jupyter_gpupool.pool.units import plural
from jupyter_gpupool.scheduling.reservations import Booking, book

from .in_force import PolicyInForce
from .once import OnceKey, once
from .policy_tree import capacity_of
from .unit import UnitOfWork

_FARTHEST = timedelta(days=36_600)
_MOST_NOTE = 60
_CLOCK = "%Y-%m-%d %H:%M"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveDevices:
    """An admin or a lead books devices for a queue."""

    caller: Caller
    queue: str
    devices: int
    begins: datetime
    ends: datetime
    note: str = ""
    key: OnceKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReservation:
    """An admin or a lead gives a booking up."""

    caller: Caller
    reservation_id: str


def reserve(unit: UnitOfWork, command: ReserveDevices) -> str:
    """Book; returns the reservation's id.

    Raises:
        BadRequest: If there is no such queue, the window makes no sense, or guarantees and
            reservations would be more than the pool has.
        NotAllowed: If the caller is neither an admin nor a lead of the queue.
    """
    _check_queue(unit.policy, command.queue)
    _check_right(unit.policy, command.caller, command.queue)
    return once(unit, command.key, lambda: _reserve(unit, command))


def cancel(unit: UnitOfWork, command: CancelReservation) -> None:
    """Give it up, now and for good.

    Raises:
        NotFound: If there is none.
        NotAllowed: If the caller is neither an admin nor a lead of its queue.
    """
    found = unit.reservations.get(command.reservation_id)
    if found is None:
        raise no_such(f"reservation {command.reservation_id}")
    _check_right(unit.policy, command.caller, found.queue)
    del unit.reservations[found.id]
    unit.record(
        EventKind.RESERVATION_CANCELLED,
        f"{command.caller.user} gave up the reservation of {_what(found)}.",
    )
    unit.replan = True


def booking_of(reservation: Reservation, words: str = "") -> Booking:
    """A reservation as a pass sees it: on the axis of every view."""
    return Booking(
        id=reservation.id,
        queue=reservation.queue,
        devices=reservation.devices,
        from_s=reservation.begins.timestamp(),
        until_s=reservation.ends.timestamp(),
        words=words,
    )


def bookings_of(reservations: Iterable[Reservation]) -> tuple[Booking, ...]:
    """All of them, in order of their windows."""
    made = (booking_of(each, _for_whom(each)) for each in reservations)
    return tuple(sorted(made, key=lambda booking: (booking.from_s, booking.id)))


def _reserve(unit: UnitOfWork, command: ReserveDevices) -> str:
    if command.ends > unit.now + _FARTHEST:
        raise BadRequest(
            "The reservation ends more than a hundred years from now.",
            field="ends",
            hint="Reserve for a shorter time.",
        )
    made = Reservation(
        id=f"r-{secrets.token_hex(8)}",
        queue=command.queue,
        devices=command.devices,
        # What is past of a window is of no use, and has no place in the calendar's far ends.
        begins=max(command.begins, unit.now) if command.ends > unit.now else command.begins,
        ends=command.ends,
        by=command.caller.user,
        note=command.note,
    )
    tree = unit.policy.tree
    capacity = capacity_of(tree, unit.hosts.values())
    booked = bookings_of(unit.reservations.values())
    left = {each.id for each in book(tree, capacity, booked, booking_of(made), _now_s(unit))}
    for over in [each.id for each in booked if each.id not in left]:
        del unit.reservations[over]
    unit.reservations[made.id] = made
    unit.record(EventKind.RESERVATION_MADE, f"{made.by} reserved {_what(made)}.")
    unit.replan = True
    return made.id


def _now_s(unit: UnitOfWork) -> float:
    return unit.now.timestamp()


def _for_whom(made: Reservation) -> str:
    note = f' ("{made.note[:_MOST_NOTE]}")' if made.note else ""
    return f"{made.queue}{note} until {made.ends.astimezone(UTC):{_CLOCK}} UTC"


def _what(made: Reservation) -> str:
    devices = plural(made.devices, "device")
    begins, ends = (f"{moment.astimezone(UTC):{_CLOCK}}" for moment in (made.begins, made.ends))
    return f"{devices} for {made.queue} from {begins} to {ends} UTC"


def _check_queue(policy: PolicyInForce, queue: str) -> None:
    if queue not in policy.tree.queues:
        known = ", ".join(policy.tree.queues)
        raise BadRequest(
            f'There is no queue "{queue}".', field="queue", hint=f"There are: {known}."
        )


def _check_right(policy: PolicyInForce, caller: Caller, queue: str) -> None:
    is_known = queue in policy.tree.queues
    above = policy.tree.path(queue) if is_known else (queue,)
    if caller.is_admin or policy.policy.leads_any(caller.user, above):
        return
    raise NotAllowed(
        f'{caller.user} may not reserve for queue "{queue}".',
        hint="An admin may, and whoever the policy names among the queue's leads.",
    )
