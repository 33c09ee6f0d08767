"""Claims without devices: give the devices back and keep the results, and have devices again."""

from functools import partial

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.auth.caller import require_sight
from jupyter_gpupool.manager.service.hibernating import (
    HibernateClaim,
    ResumeClaim,
    hibernate_claim,
    resume_claim,
)
from jupyter_gpupool.pool.claim_events import HibernateAsked, ResumeAsked
from jupyter_gpupool.pool.claim_machine import ImpossibleTransition
from jupyter_gpupool.pool.errors import Conflict, NotFound
from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.protocol.api import ClaimView, HibernateBody, ResumeBody

from . import answers
from .claims import find, foresee, view
from .parts import ONCE_HEADER, UserAsks
from .problems import responses

router = APIRouter(prefix="/claims", tags=["claims"])


@router.post(
    "/{claim_id}/hibernate",
    response_model=ClaimView,
    responses=responses(NotFound, Conflict),
    openapi_extra=ONCE_HEADER,
)
async def hibernate(claim_id: str, body: HibernateBody, asked: UserAsks) -> Response:
    """Give its devices back and keep its results. Asking again changes nothing."""
    service = asked.service
    record = await find(service, ClaimId(claim_id))
    require_sight(asked.caller, record.claim.owner, f"claim {claim_id}")
    if record.claim.id not in service.books.claims:
        raise ImpossibleTransition(record.claim, HibernateAsked(reason=body.reason))
    command = HibernateClaim(
        caller=asked.caller, claim_id=record.claim.id, reason=body.reason, key=asked.once
    )
    await service.execute(partial(hibernate_claim, command=command))
    return answers.one(view(await find(service, record.claim.id), service))


@router.post(
    "/{claim_id}/resume",
    response_model=ClaimView,
    responses=responses(NotFound, Conflict),
    openapi_extra=ONCE_HEADER,
)
async def resume(claim_id: str, _: ResumeBody, asked: UserAsks) -> Response:
    """Have devices for it again, as soon as the pool has room. Asking again changes nothing."""
    service = asked.service
    record = await find(service, ClaimId(claim_id))
    require_sight(asked.caller, record.claim.owner, f"claim {claim_id}")
    if record.claim.id not in service.books.claims:
        raise ImpossibleTransition(record.claim, ResumeAsked(reason=""))
    command = ResumeClaim(caller=asked.caller, claim_id=record.claim.id, key=asked.once)
    await service.execute(partial(resume_claim, command=command))
    found = await find(service, record.claim.id)
    await foresee([found], service)
    return answers.one(view(found, service))
