"""The link with an agent: its reports become commands, the newest `Desired` goes back.

So do questions, whose answers change nothing here. All else is level-triggered: every message is
whole, so a failed commit or a missed message is healed by the next one. Closes with 4401 when the
token is void, 4408 after a long silence, 4409 for a newer agent of the host, 1007 for what cannot
be read, 1013 to try again later, 1012 when the manager ends.
"""

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import BaseModel, ValidationError

from jupyter_gpupool.manager.auth.caller import Caller
from jupyter_gpupool.manager.service.hosts import HostSaid, check_token, host_said
from jupyter_gpupool.manager.service.links import Closing, Link
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.pool.errors import NotAllowed, PoolError
from jupyter_gpupool.protocol.link import (
    LINK_VERSION,
    FromAgent,
    HostReport,
    Joined,
    LogAnswer,
    LookNow,
    Refused,
)

from .parts import AgentCaller, Parts, TheParts

_LOG = logging.getLogger(__name__)
_TRY_LATER, _MISREAD, _SILENT = 1013, 1007, 4408
_MOST_ID = 200
_MOST_CLOSE_REASON = 120
_CODES = {Closing.VOID: 4401, Closing.REPLACED: 4409, Closing.ENDING: 1012}
_LARGE = 64 * 1024
_TAKEN_IN_WITHIN_S = 5.0
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
        except TimeoutError:
            _LOG.warning("An agent's link is closed: nothing was heard for too long")
            await socket.close(_SILENT, "No report came for too long.")
        except (ValidationError, _NoText) as error:
            reason = _misread(error)[:_MOST_CLOSE_REASON]
            _LOG.warning("An agent's link is closed: %s", reason)
            await socket.close(_MISREAD, reason)


class _NoText(Exception):
    """The agent sent bytes, which mean nothing here."""


def _misread(error: ValidationError | _NoText) -> str:
    if isinstance(error, _NoText):
        return "A message holds bytes, not text."
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the message'}: {first['msg']}"


async def _converse(socket: WebSocket, caller: Caller, parts: Parts) -> None:
    service = parts.service
    report = await _hear(socket, service)
    if isinstance(report, LogAnswer):
        await socket.close(_MISREAD, "The first message is no report.")
        return
    refusal = _refusal(report) or _intruder(report, caller, service)
    if refusal is not None:
        await _say(socket, refusal)
        return
    opened = Link(host_id=report.host_id, peer=(report.name, report.address))
    now_s = service.clock.monotonic()
    service.links.open(opened, now_s)
    service.links.heard_s[opened.host_id] = now_s
    try:
        with parts.sessions.opened(caller, lambda: opened.close(Closing.VOID)):
            first = HostSaid(report=report, joins=True, token_id=caller.credential_id)
            await _serve(socket, service, opened, first)
    finally:
        opened.questions.close()
        if service.links.drop(opened):
            service.link_broke(opened.host_id)


async def _serve(socket: WebSocket, service: Service, opened: Link, said: HostSaid) -> None:
    first = said.report
    try:
        await service.execute(partial(host_said, command=said))
    except PoolError as error:
        _LOG.warning("Host %s cannot join yet: %s", first.name, error)
        await socket.close(_TRY_LATER)
        return
    await _say(socket, _joined(service, opened))
    opened.changed.set()
    telling = asyncio.ensure_future(_tell(socket, service, opened))
    hearing = asyncio.ensure_future(_keep_hearing(socket, service, opened))
    try:
        await asyncio.wait((telling, hearing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        telling.cancel()
        hearing.cancel()
        await asyncio.wait((telling, hearing))
    for side in (telling, hearing):
        # Whoever listens on a link that we have closed ourselves fails, which is no news.
        if not side.cancelled() and opened.closing is None:
            side.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """The last `Desired` that went out; a large one is waited for.

    A busy agent that has a row of them to read would answer neither pings nor anything else.
    """

    generation: int = 0
    size: int = 0
    at_s: float = 0.0

    def gives_way_to(self, newer: int, made_so: int, now_s: float) -> bool:
        """Whether a newer one may go out. One that makes no sense to the agent holds up none."""
        is_taken_in = made_so >= self.generation or now_s - self.at_s >= _TAKEN_IN_WITHIN_S
        return newer > self.generation and (self.size < _LARGE or is_taken_in)


async def _tell(socket: WebSocket, service: Service, opened: Link) -> None:
    outbox = service.outboxes.of(opened.host_id)
    last = _Told()
    while True:
        await opened.changed.wait()
        opened.changed.clear()
        if opened.closing is not None:
            await socket.close(_CODES[opened.closing], opened.closing)
            return
        desired, now_s = outbox.desired, service.clock.monotonic()
        if desired is not None and last.gives_way_to(desired.generation, opened.made_so, now_s):
            text = desired.model_dump_json()
            last = _Told(generation=desired.generation, size=len(text), at_s=now_s)
            await socket.send_text(text)
        if opened.look:
            opened.look = False
            await _say(socket, LookNow())
        while (query := opened.questions.next_unsent()) is not None:
            await _say(socket, query)


async def _keep_hearing(socket: WebSocket, service: Service, opened: Link) -> None:
    while True:
        report = await _hear(socket, service)
        if isinstance(report, LogAnswer):
            opened.questions.take(report)
            continue
        refusal = _refusal(report) or _foreign(report, opened)
        if refusal is not None:
            # Another host's word would free that host's devices under running workers.
            await _say(socket, refusal)
            return
        service.links.heard_s[opened.host_id] = service.clock.monotonic()
        opened.made_so = report.generation
        opened.changed.set()
        try:
            await service.execute(partial(host_said, command=HostSaid(report=report)))
        except PoolError as error:
            # The next report says it all again.
            _LOG.warning("A report of host %s could not be kept: %s", report.name, error)


async def _hear(socket: WebSocket, service: Service) -> HostReport | LogAnswer:
    async with asyncio.timeout(service.settings.host_lost_after_s * _SILENT_AFTER):
        message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message["code"], message.get("reason"))
    text = message.get("text")
    if text is None:
        raise _NoText
    return FromAgent.validate_json(text)


def _refusal(report: HostReport) -> Refused | None:
    if report.link_version != LINK_VERSION:
        return Refused(
            reason=f"The agent speaks link version {report.link_version},"
            f" this manager version {LINK_VERSION}.",
            hint="Install the same version of jupyter_gpupool on both.",
        )
    named = (report.host_id, *(entry.device.uuid for entry in report.devices))
    if not all(1 <= len(name) <= _MOST_ID and name.isprintable() for name in named):
        return Refused(
            reason="The report names a host or device that cannot be kept.",
            hint=f"Ids have 1 to {_MOST_ID} printable characters.",
        )
    return None


def _foreign(report: HostReport, opened: Link) -> Refused | None:
    if report.host_id == opened.host_id:
        return None
    return Refused(
        reason=f"The agent of host {opened.host_id} reports for host {report.host_id}.",
        hint="An agent speaks for its own host alone.",
    )


def _intruder(report: HostReport, caller: Caller, service: Service) -> Refused | None:
    # Before the link is opened, for that closes the one of the true agent.
    try:
        check_token(service.books, report.host_id, caller.credential_id)
    except NotAllowed as error:
        return Refused(reason=error.message, hint=error.hint)
    other = service.links.other(report.host_id, (report.name, report.address))
    if other is None:
        return None
    name, address = other.peer
    return Refused(
        reason=f"Host {report.host_id} is connected already, as {name} at {address}.",
        hint="If its agent's state folder was copied from there, delete the file host-id in it.",
    )


def _joined(service: Service, opened: Link) -> Joined:
    return Joined(
        host_id=opened.host_id,
        manager_time=service.clock.now(),
        orphan_after_s=service.settings.orphan_after_s,
    )


async def _say(socket: WebSocket, message: BaseModel) -> None:
    await socket.send_text(message.model_dump_json())
