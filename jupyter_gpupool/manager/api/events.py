"""What happened: as a list, and as a stream that resumes from any position still kept.

The stream closes with 4401 when its token is void, 4408 when its reader is too slow, 1012 when
the manager ends; whoever connects again with `after` misses nothing.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Response, WebSocket, WebSocketDisconnect

from jupyter_gpupool.manager.auth.caller import Caller, may_see_event
from jupyter_gpupool.manager.service.hub import Listener
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.pool.event import Event
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.protocol.api import EventView, StreamGap

from . import answers
from .parts import Parts, TheParts, TheService, UserCaller
from .problems import responses
from .views import event_view

TOKEN_VOID, TOO_SLOW, RESTARTING = 4401, 4408, 1012
_PAGE = 1000

router = APIRouter(prefix="/events", tags=["events"])

After = Annotated[int, Query(ge=0, le=2**62)]


@router.get("", response_model=list[EventView], responses=responses())
async def list_events(
    caller: UserCaller,
    service: TheService,
    after: After = 0,
    claim: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """Events after a position, oldest first: the caller's own and everybody's."""
    found = await _stored(service, caller, after, claim, limit)
    return answers.many([event_view(event, caller) for event in found])


@router.websocket("/stream")
async def stream(
    socket: WebSocket,
    caller: UserCaller,
    parts: TheParts,
    after: After | None = None,
    claim: str | None = None,
) -> None:
    """Events as they happen, after those since `after`; a gap is told first."""
    await socket.accept()
    with contextlib.suppress(WebSocketDisconnect, asyncio.CancelledError):
        await _serve(socket, caller, parts, after, claim)


async def _serve(
    socket: WebSocket, caller: Caller, parts: Parts, after: int | None, claim: str | None
) -> None:
    sending = asyncio.ensure_future(_send_events(socket, caller, parts.service, after, claim))
    hearing = asyncio.ensure_future(_until_gone(socket))
    with parts.sessions.opened(caller, sending.cancel):
        try:
            await asyncio.wait((sending, hearing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_gone = hearing.done()
            sending.cancel()
            hearing.cancel()
            await asyncio.wait((sending, hearing))
    if not is_gone:
        await socket.close(_code(sending, is_ending=parts.is_ending))


def _code(sending: asyncio.Future[None], *, is_ending: bool) -> int:
    if is_ending or (not sending.cancelled() and sending.exception() is not None):
        return RESTARTING
    return TOKEN_VOID if sending.cancelled() else TOO_SLOW


async def _send_events(
    socket: WebSocket, caller: Caller, service: Service, after: int | None, claim: str | None
) -> None:
    def wishes(event: Event) -> bool:
        return may_see_event(caller, event) and claim in (None, event.claim_id)

    listener = Listener(wishes=wishes)
    service.hub.listeners.add(listener)
    try:
        seen = service.books.seq
        if after is not None:
            seen = await _send_missed(socket, caller, service, after, claim)
        while events := await listener.next_events():
            for event in events:
                if event.seq > seen:
                    await socket.send_text(event_view(event, caller).model_dump_json())
    finally:
        service.hub.listeners.discard(listener)


async def _send_missed(
    socket: WebSocket, caller: Caller, service: Service, after: int, claim: str | None
) -> int:
    seen = min(after, service.books.seq)
    if service.hub.since(seen) is None or seen != after:
        oldest = await service.store.oldest_event()
        if seen < oldest - 1 or seen != after:
            await socket.send_text(StreamGap(oldest=oldest).model_dump_json())
    async for event in _missed(service, caller, seen, claim):
        await socket.send_text(event_view(event, caller).model_dump_json())
        seen = event.seq
    return seen


async def _missed(
    service: Service, caller: Caller, after: int, claim: str | None
) -> AsyncIterator[Event]:
    remembered = service.hub.since(after)
    while remembered is None:
        page = await _stored(service, caller, after, claim, _PAGE)
        for event in page:
            yield event
        after = page[-1].seq if page else after
        remembered = service.hub.since(after) if len(page) == _PAGE else []
    for event in remembered:
        if may_see_event(caller, event) and claim in (None, event.claim_id):
            yield event


async def _stored(
    service: Service, caller: Caller, after: int, claim: str | None, limit: int
) -> list[Event]:
    owner = None if caller.is_admin else caller.user
    claim_id = None if claim is None else ClaimId(claim)
    return await service.store.events(after=after, owner=owner, claim_id=claim_id, limit=limit)


async def _until_gone(socket: WebSocket) -> None:
    # A client has nothing to say here; this only notices that it went.
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
