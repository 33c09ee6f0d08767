"""Claims without devices: give the devices back and keep the results, and have devices again."""

from functools import partial

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.service.hibernating import (
    HibernateClaim,
    ResumeClaim,
    hibernate_claim,
    resume_claim,
)
from jupyter_gpupool.pool.claim_events import HibernateAsked, ResumeAsked
from jupyter_gpupool.pool.errors import Conflict, NotFound
from jupyter_gpupool.protocol.api import ClaimView, HibernateBody, ResumeBody

from .claims import as_it_stands, find, foresee, known
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
    claim = await known(claim_id, asked, HibernateAsked(reason=body.reason))
    command = HibernateClaim(
        caller=asked.caller, claim_id=claim.id, reason=body.reason, key=asked.once
    )
    await asked.service.execute(partial(hibernate_claim, command=command))
    return await as_it_stands(claim.id, asked.service, asked.caller)


@router.post(
    "/{claim_id}/resume",
    response_model=ClaimView,
    responses=responses(NotFound, Conflict),
    openapi_extra=ONCE_HEADER,
)
async def resume(claim_id: str, _: ResumeBody, asked: UserAsks) -> Response:
    """Have devices for it again, as soon as the pool has room. Asking again changes nothing."""
    claim, service = await known(claim_id, asked, ResumeAsked(reason="")), asked.service
    command = ResumeClaim(caller=asked.caller, claim_id=claim.id, key=asked.once)
    await service.execute(partial(resume_claim, command=command))
    await foresee([await find(service, claim.id)], service)
    return await as_it_stands(claim.id, service, asked.caller)
