"""The link with an agent: its reports become commands, the newest `Desired` goes back.

Level-triggered: every message is whole, so a failed commit or a missed message is healed by the
next one. Closes with 4401 when the token is void, 4409 for a newer agent of the host, 1013 to try
again later, 1012 when the manager ends.
"""

import asyncio
import contextlib
import logging
from functools import partial

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ValidationError

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.service.hosts import HostSaid, host_said, host_silent
from jupyter_gpupool.manager.service.links import Closing, Link
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.protocol.link import LINK_VERSION, HostReport, Joined, Refused

from .parts import AgentCaller, Parts, TheParts

_LOG = logging.getLogger(__name__)
_TRY_LATER, _MISREAD = 1013, 1007
_CODES = {Closing.VOID: 4401, Closing.REPLACED: 4409, Closing.ENDING: 1012}
_SILENT_AFTER = 2 / 3
"""Of `host_lost_after_s`: a link without a word for so long is taken for broken."""

router = APIRouter(prefix="/agents", tags=["agents"])


@router.websocket("/link")
async def link(socket: WebSocket, caller: AgentCaller, parts: TheParts) -> None:
    """One agent's link, from its first report until either side goes."""
    await socket.accept()
    with contextlib.suppress(WebSocketDisconnect, asyncio.CancelledError):
        try:
            await _converse(socket, caller, parts)
        except (TimeoutError, ValidationError) as error:
            _LOG.warning("An agent's link is closed: %s", type(error).__name__)
            await socket.close(_MISREAD)


async def _converse(socket: WebSocket, caller: Caller, parts: Parts) -> None:
    service = parts.service
    report = await _hear(socket, service)
    refusal = _refusal(report)
    if refusal is not None:
        await _say(socket, refusal)
        return
    opened = Link(host_id=report.host_id)
    service.links.open(opened)
    try:
        with parts.sessions.opened(caller, lambda: opened.close(Closing.VOID)):
            await _serve(socket, service, opened, report)
    finally:
        if service.links.drop(opened):
            with contextlib.suppress(PoolError):
                await service.execute(partial(host_silent, host_id=opened.host_id))


async def _serve(socket: WebSocket, service: Service, opened: Link, first: HostReport) -> None:
    try:
        await _take(service, first, joins=True)
    except PoolError as error:
        _LOG.warning("Host %s cannot join yet: %s", first.name, error)
        await socket.close(_TRY_LATER)
        return
    await _say(socket, _joined(service, opened))
    opened.changed.set()
    telling = asyncio.ensure_future(_tell(socket, service, opened))
    hearing = asyncio.ensure_future(_keep_hearing(socket, service))
    try:
        await asyncio.wait((telling, hearing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        telling.cancel()
        hearing.cancel()
        await asyncio.wait((telling, hearing))
    for side in (telling, hearing):
        if not side.cancelled():
            side.result()


async def _tell(socket: WebSocket, service: Service, opened: Link) -> None:
    outbox = service.outboxes.of(opened.host_id)
    told = 0
    while True:
        await opened.changed.wait()
        opened.changed.clear()
        if opened.closing is not None:
            await socket.close(_CODES[opened.closing], opened.closing)
            return
        desired = outbox.desired
        if desired is not None and desired.generation > told:
            told = desired.generation
            await _say(socket, desired)


async def _keep_hearing(socket: WebSocket, service: Service) -> None:
    while True:
        report = await _hear(socket, service)
        try:
            await _take(service, report, joins=False)
        except PoolError as error:
            # The next report says it all again.
            _LOG.warning("A report of host %s could not be kept: %s", report.name, error)


async def _hear(socket: WebSocket, service: Service) -> HostReport:
    async with asyncio.timeout(service.settings.host_lost_after_s * _SILENT_AFTER):
        text = await socket.receive_text()
    report = HostReport.model_validate_json(text)
    service.links.heard_s[report.host_id] = service.clock.monotonic()
    return report


async def _take(service: Service, report: HostReport, *, joins: bool) -> None:
    command = HostSaid(report=report, joins=joins)
    await service.execute(partial(host_said, command=command))


def _refusal(report: HostReport) -> Refused | None:
    if report.link_version == LINK_VERSION:
        return None
    return Refused(
        reason=f"The agent speaks link version {report.link_version},"
        f" this manager version {LINK_VERSION}.",
        hint="Install the same version of jupyter_gpupool on both.",
    )


def _joined(service: Service, opened: Link) -> Joined:
    return Joined(
        host_id=opened.host_id,
        manager_time=service.clock.now(),
        orphan_after_s=service.settings.orphan_after_s,
    )


async def _say(socket: WebSocket, message: BaseModel) -> None:
    await socket.send_text(message.model_dump_json())
