"""Hosts and devices, and the pool in one look."""

from functools import partial

from fastapi import APIRouter, Response

from jupyter_gpupool.protocol.api import DeviceView, HostView, StatusView

from . import answers
from .parts import TheService, UserCaller
from .problems import responses
from .views import device_views, host_views, status_view

router = APIRouter(tags=["pool"])


@router.get("/status", response_model=StatusView, responses=responses())
async def status(caller: UserCaller, service: TheService) -> Response:
    """The pool in one look, and who is asking."""
    return answers.one(status_view(caller, service.books))


@router.get("/hosts", response_model=list[HostView], responses=responses())
async def hosts(caller: UserCaller, service: TheService) -> Response:  # noqa: ARG001 - a right
    """All hosts, with what is free on them."""
    contested = partial(service.links.contested, now_s=service.clock.monotonic())
    return answers.many(host_views(service.books, contested))


@router.get("/devices", response_model=list[DeviceView], responses=responses())
async def devices(caller: UserCaller, service: TheService) -> Response:
    """All devices; who has them only as far as the caller may know."""
    return answers.many(device_views(caller, service.books))
