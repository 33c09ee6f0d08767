"""Hosts and devices, and the pool in one look."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.records import ClaimRecord
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.pool.claim import WAITING
from jupyter_gpupool.protocol.api import DeviceView, HostView, StatusView
from jupyter_gpupool.protocol.estimates import ComingView
from jupyter_gpupool.protocol.reserving import ReservationView

from . import answers
from .claims import foresee, start_of
from .parts import TheService, UserCaller
from .problems import responses
from .reservations import reservation_views
from .views import device_views, host_views, start_view, status_view
from .warning_views import warned_views

_MOST_COMING = 5
_MOST_PROBLEMS = 5
_SOON = timedelta(days=1)

router = APIRouter(tags=["pool"])


@router.get("/status", response_model=StatusView, responses=responses())
async def status(caller: UserCaller, service: TheService) -> Response:
    """The pool in one look, and who is asking."""
    mine = [r for r in service.books.claims.values() if _waits_of(caller, r)]
    if mine:
        await service.waits.refresh()
        await foresee(mine, service)
    view = status_view(caller, service.books)
    coming = sorted(_coming(mine, service), key=lambda each: (each.place, each.claim))
    more = {
        "coming": tuple(coming[:_MOST_COMING]),
        "warned": warned_views(caller, service.books, service.clock.now()),
        "reservations": _booked_soon(service),
        "problems": (*_of_manager(caller, service), *_of_claims(caller, service.books)),
    }
    return answers.one(view.model_copy(update=more))


@router.get("/hosts", response_model=list[HostView], responses=responses())
async def hosts(caller: UserCaller, service: TheService) -> Response:  # noqa: ARG001 - a right
    """All hosts, with what is free on them."""
    contested = partial(service.links.contested, now_s=service.clock.monotonic())
    return answers.many(host_views(service.books, contested))


@router.get("/devices", response_model=list[DeviceView], responses=responses())
async def devices(caller: UserCaller, service: TheService) -> Response:
    """All devices; who has them only as far as the caller may know."""
    return answers.many(device_views(caller, service.books))


def _booked_soon(service: Service) -> tuple[ReservationView, ...]:
    now = service.clock.now()
    views = reservation_views(service.books, now)
    return tuple(view for view in views if view.begins <= now + _SOON)[:_MOST_COMING]


def _of_manager(caller: Caller, service: Service) -> tuple[str, ...]:
    problems = service.problems() if caller.is_admin else ()
    return tuple(f"{problem.text} {problem.detail}" for problem in problems)


def _of_claims(caller: Caller, books: Books) -> list[str]:
    mine = (r.claim for r in books.claims.values() if r.claim.owner == caller.user)
    told = [f"Claim {claim.name}: {each.text}" for claim in mine for each in claim.problems]
    return told[:_MOST_PROBLEMS]


def _waits_of(caller: Caller, record: ClaimRecord) -> bool:
    return record.claim.owner == caller.user and record.claim.phase in WAITING


def _coming(records: Iterable[ClaimRecord], service: Service) -> Iterator[ComingView]:
    now = service.clock.now()
    for record in records:
        claim, wait = record.claim, service.waits.of(record.claim.id)
        if wait is not None and not wait.never and claim.phase in WAITING:
            start = start_view(start_of(record, service), now)
            yield ComingView(claim=claim.id, name=claim.name, place=wait.place, **dict(start))
