"""Claims: ask for one, see it, scale it, give it back, connect to it."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Response

from jupyter_gpupool.manager.auth.caller import (
    Caller,
    no_such,
    require_owner,
    require_sight,
)
from jupyter_gpupool.manager.service.claims import (
    ReleaseClaim,
    RequestClaim,
    release_claim,
    request_claim,
)
from jupyter_gpupool.manager.service.forecasts import Start, promised_start
from jupyter_gpupool.manager.service.idle_subjects import own_wish
from jupyter_gpupool.manager.service.records import ClaimRecord
from jupyter_gpupool.manager.service.scaling import ScaleClaim, scale_claim
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.pool.claim import WAITING, Claim, Phase
from jupyter_gpupool.pool.claim_events import ClaimEvent, Rescaled
from jupyter_gpupool.pool.claim_machine import ImpossibleTransition
from jupyter_gpupool.pool.errors import Conflict, NotAllowed, NotFound
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.own_wish import check_wish
from jupyter_gpupool.pool.request import WorkerBounds
from jupyter_gpupool.protocol.api import (
    ClaimBody,
    ClaimView,
    ConnectionView,
    ReleaseBody,
    ScaleBody,
)

from . import answers
from .parts import ONCE_HEADER, Asked, TheService, UserAsks, UserCaller
from .problems import CREATED, responses
from .views import claim_view

router = APIRouter(prefix="/claims", tags=["claims"])


@router.post(
    "",
    status_code=CREATED,
    response_model=ClaimView,
    responses=responses(NotAllowed, Conflict),
    openapi_extra=ONCE_HEADER,
)
async def create_claim(body: ClaimBody, asked: UserAsks) -> Response:
    """Ask for workers. Starts at once if the pool has room, else waits in line."""
    check_terms(body, asked.service)
    command = RequestClaim(caller=asked.caller, request=body.to_request(), key=asked.once)
    claim_id = await asked.service.execute(partial(request_claim, command=command))
    return answers.one(
        view(await find(asked.service, claim_id), asked.service, asked.caller), CREATED
    )


@router.get("", response_model=list[ClaimView], responses=responses())
async def list_claims(
    caller: UserCaller,
    service: TheService,
    owner: str | None = None,
    ended: bool = False,  # noqa: FBT001, FBT002 - a query parameter
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """The claims that live, youngest first; with `ended`, also those that ended last."""
    whose = caller.user if not caller.is_admin else UserName(owner) if owner else None
    if owner and owner != whose:
        return answers.many([])
    await service.waits.refresh()
    records = [r for r in service.books.claims.values() if r.claim.phase is not Phase.ENDED]
    records = [r for r in records if whose is None or r.claim.owner == whose]
    if ended:
        records += await service.store.ended_claims(whose, limit)
    records.sort(key=lambda r: (r.claim.created_at, r.claim.id), reverse=True)
    await foresee(records[:limit], service)
    return answers.many([view(record, service, caller) for record in records[:limit]])


@router.get("/{claim_id}", response_model=ClaimView, responses=responses(NotFound))
async def get_claim(claim_id: str, caller: UserCaller, service: TheService) -> Response:
    """One claim, with its leases, and while it waits with its place and the reason."""
    record = await find(service, ClaimId(claim_id))
    require_sight(caller, record.claim.owner, f"claim {claim_id}")
    await service.waits.refresh()
    await foresee([record], service)
    return answers.one(view(await find(service, record.claim.id), service, caller))


@router.post("/{claim_id}/scale", response_model=ClaimView, responses=responses(NotFound, Conflict))
async def scale(claim_id: str, body: ScaleBody, asked: UserAsks) -> Response:
    """Want more or fewer workers."""
    bounds = WorkerBounds(body.workers.min, body.workers.max)
    claim = await known(claim_id, asked, Rescaled(reason="", bounds=bounds))
    command = ScaleClaim(caller=asked.caller, claim_id=claim.id, bounds=bounds, key=asked.once)
    await asked.service.execute(partial(scale_claim, command=command))
    return await as_it_stands(claim.id, asked.service, asked.caller)


@router.post(
    "/{claim_id}/release",
    response_model=ClaimView,
    responses=responses(NotFound),
    openapi_extra=ONCE_HEADER,
)
async def release(claim_id: str, body: ReleaseBody, asked: UserAsks) -> Response:
    """Give a claim back. Releasing again changes nothing."""
    service = asked.service
    record = await find(service, ClaimId(claim_id))
    require_sight(asked.caller, record.claim.owner, f"claim {claim_id}")
    if not record.claim.is_over:
        command = ReleaseClaim(
            caller=asked.caller, claim_id=record.claim.id, reason=body.reason, key=asked.once
        )
        await service.execute(partial(release_claim, command=command))
    return await as_it_stands(record.claim.id, service, asked.caller)


@router.get(
    "/{claim_id}/connection",
    response_model=ConnectionView,
    responses=responses(NotFound, Conflict),
)
async def connection(claim_id: str, caller: UserCaller, service: TheService) -> Response:
    """What its owner needs to reach its scheduler, and nobody else gets."""
    record = await find(service, ClaimId(claim_id))
    require_owner(caller, record.claim.owner, f"claim {claim_id}")
    return answers.one(_connection_view(record))


async def find(service: Service, claim_id: ClaimId) -> ClaimRecord:
    """A claim from memory, or from the database once it has ended long ago.

    Raises:
        NotFound: If there is none.
    """
    record = service.books.claims.get(claim_id)
    if record is None and claim_id.isprintable():
        record = await service.store.claim(claim_id)
    if record is None:
        raise no_such(f"claim {claim_id}")
    return record


async def known(claim_id: str, asked: Asked, wish: ClaimEvent) -> Claim:
    """The claim of which its user, or an admin, wants this.

    Raises:
        NotFound: If there is none that the caller may know of.
        ImpossibleTransition: If it ended so long ago that only the database knows it.
    """
    claim = (await find(asked.service, ClaimId(claim_id))).claim
    require_sight(asked.caller, claim.owner, f"claim {claim_id}")
    if claim.id not in asked.service.books.claims:
        raise ImpossibleTransition(claim, wish)
    return claim


async def as_it_stands(claim_id: ClaimId, service: Service, caller: Caller) -> Response:
    """What is answered to whoever has changed a claim."""
    return answers.one(view(await find(service, claim_id), service, caller))


def view(record: ClaimRecord, service: Service, caller: Caller) -> ClaimView:
    """A claim as somebody who may see it sees it now."""
    claim = record.claim
    kernels = service.activity.views(claim.id, claim.kernels)
    wait, now = service.waits.of(claim.id), service.clock.now()
    start = start_of(record, service)
    return claim_view(record, service.books, wait, kernels, now, caller=caller, start=start)


async def foresee(records: Iterable[ClaimRecord], service: Service) -> None:
    """Have the starts of those that wait foreseen, unless that was done a moment ago."""
    await service.forecasts.refresh(r.claim.id for r in records if r.claim.phase in WAITING)


def start_of(record: ClaimRecord, service: Service) -> Start | None:
    """When a claim is thought to start; None if that cannot be told, or it does not wait."""
    claim = record.claim
    if claim.phase not in WAITING:
        return None
    promised = promised_start(service.books, claim.id, service.clock.now())
    return promised or service.forecasts.of(claim.id)


def check_terms(body: ClaimBody, service: Service) -> None:
    """Refuse terms that a claim has and this pool cannot keep, rather than forget them.

    Raises:
        BadRequest: If there is one.
    """
    check_wish(service.books.policy.policy.idle, own_wish(body.to_request()))


def _connection_view(record: ClaimRecord) -> ConnectionView:
    claim, secrets = record.claim, record.secrets
    if claim.is_over or secrets is None or claim.scheduler is None:
        raise Conflict(
            f"Claim {claim.name} is {claim.phase}: there is nothing to connect to.",
            hint="" if claim.is_over else "Ask again once it is starting.",
        )
    return ConnectionView(
        scheduler_address=claim.scheduler.address,
        dashboard_url=_dashboard_url(record),
        ca=secrets.ca,
        certificate=secrets.client.certificate,
        key=secrets.client.key,
    )


def _dashboard_url(record: ClaimRecord) -> str | None:
    place, secrets = record.claim.scheduler, record.secrets
    if place is None or secrets is None or place.address is None or place.dashboard_port is None:
        return None
    host = urlsplit(place.address).hostname or ""
    bracketed = f"[{host}]" if ":" in host else host
    return f"https://{bracketed}:{place.dashboard_port}/{secrets.dashboard_prefix}/status"
