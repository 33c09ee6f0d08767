"""Reservations: book devices for a queue in a window, see what is booked, give it up."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.reserving import (
    CancelReservation,
    ReserveDevices,
    cancel,
    reserve,
)
from jupyter_gpupool.pool.errors import NotFound
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.reservation import Reservation
from jupyter_gpupool.protocol.reserving import ReservationView, ReserveBody

from . import answers
from .parts import ONCE_HEADER, TheService, UserAsks, UserCaller
from .problems import CREATED, NO_CONTENT, responses

router = APIRouter(prefix="/reservations", tags=["reservations"])


@router.post(
    "",
    status_code=CREATED,
    response_model=ReservationView,
    responses=responses(NotFound),
    openapi_extra=ONCE_HEADER,
)
async def create_reservation(body: ReserveBody, asked: UserAsks) -> Response:
    """Book devices for a queue. For an admin, and for whoever leads the queue."""
    command = ReserveDevices(
        caller=asked.caller,
        queue=body.queue,
        devices=body.devices,
        begins=body.begins,
        ends=body.ends,
        note=body.note,
        key=asked.once,
    )
    made = await asked.service.execute(partial(reserve, command=command))
    books = asked.service.books
    return answers.one(_view(_known(books, made), books, asked.service.clock.now()), CREATED)


@router.get("", response_model=list[ReservationView], responses=responses())
async def list_reservations(caller: UserCaller, service: TheService) -> Response:  # noqa: ARG001 - a right
    """What is booked and not over, in order of the windows. Everybody may know."""
    return answers.many(list(reservation_views(service.books, service.clock.now())))


@router.delete("/{reservation_id}", status_code=NO_CONTENT, responses=responses(NotFound))
async def delete_reservation(
    reservation_id: str, caller: UserCaller, service: TheService
) -> Response:
    """Give a reservation up. For an admin, and for whoever leads its queue."""
    command = CancelReservation(caller=caller, reservation_id=reservation_id)
    await service.execute(partial(cancel, command=command))
    return Response(status_code=NO_CONTENT)


def reservation_views(books: Books, now: datetime) -> Iterator[ReservationView]:
    """All that are not over, in order of their windows."""
    made = [each for each in books.reservations.values() if each.ends > now]
    for each in sorted(made, key=lambda each: (each.begins, each.id)):
        yield _view(each, books, now)


def _known(books: Books, reservation_id: str) -> Reservation:
    found = books.reservations.get(reservation_id)
    if found is None:
        # Asked for again with its key, after it was given up.
        raise NotFound(f"Reservation {reservation_id} was given up.")
    return found


def _view(made: Reservation, books: Books, now: datetime) -> ReservationView:
    return ReservationView(
        id=made.id,
        queue=made.queue,
        devices=made.devices,
        begins=made.begins,
        ends=made.ends,
        by=made.by,
        note=made.note,
        is_open=made.is_open(now),
        held=_held_by(made.queue, books),
    )


def _held_by(queue: str, books: Books) -> int:
    """Whole devices that a queue and those below it hold, rounded up."""
    policy, thousandths = books.policy, 0
    if queue not in policy.tree.queues:
        return 0
    for lease in books.leases.values():
        stands = policy.queue_of(books.claims[lease.claim_id].claim)
        if stands is not None and queue in policy.tree.path(stands.name):
            thousandths += lease.thousandths
    return -(-thousandths // WHOLE_DEVICE)
