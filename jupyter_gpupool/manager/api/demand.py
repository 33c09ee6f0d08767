"""Demand: hosts that would start claims, and hosts that may go."""

from datetime import UTC, datetime
from functools import partial

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.service.books import Books
from jupyter_gpupool.manager.service.demand import Demand, demand_of
from jupyter_gpupool.protocol.demand import DemandView, HostsWantedView, SpareHostView
from jupyter_gpupool.scheduling.elasticity import HostsWanted
from jupyter_gpupool.scheduling.shape import HostShape

from . import answers
from .parts import AdminCaller, TheService
from .problems import responses

router = APIRouter(prefix="/demand", tags=["pool"])


@router.get("", response_model=DemandView, responses=responses())
async def demand(caller: AdminCaller, service: TheService) -> Response:  # noqa: ARG001 - a right
    """What hosts would start claims that wait, and which hosts may go. For admins."""
    view, steps = service.look(), service.steps
    empty = dict(service.emptiness.since_s)
    found = await service.forecasts.compute(partial(demand_of, view, steps, empty))
    return answers.one(_view(found, service.books))


def _view(found: Demand, books: Books) -> DemandView:
    spare = (
        SpareHostView(id=i, name=books.hosts[i].name, empty_since=datetime.fromtimestamp(s, UTC))
        for i, s in found.may_go
        if i in books.hosts
    )
    wanted = (_wanted_view(wish, found.offers[wish.offer]) for wish in found.wanted)
    return DemandView(wanted=tuple(wanted), may_go=tuple(spare))


def _wanted_view(wish: HostsWanted, host: HostShape) -> HostsWantedView:
    return HostsWantedView(
        shape=wish.offer,
        count=wish.count,
        devices=len(host.devices),
        cpus=host.cpu // 1000,
        memory_bytes=host.memory_bytes,
        labels=tuple(sorted(host.labels)),
        claims=wish.claims,
    )
