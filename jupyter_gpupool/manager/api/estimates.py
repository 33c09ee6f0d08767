"""Estimates: when a claim would start that nobody has made, and what would start sooner."""

from functools import partial

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.service.claims import RequestClaim
from jupyter_gpupool.manager.service.estimating import Foretold, Imagined, foretell, imagine
from jupyter_gpupool.manager.service.once import OnceKey, once
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.service.unit import UnitOfWork
from jupyter_gpupool.pool.errors import Conflict, NotAllowed
from jupyter_gpupool.pool.request import ClaimRequest
from jupyter_gpupool.protocol.api import ClaimBody
from jupyter_gpupool.protocol.estimates import AlternativeView, EstimateView

from . import answers
from .claims import check_terms
from .parts import ONCE_HEADER, UserAsks
from .problems import responses
from .starting import misses_deadline
from .views import start_view

router = APIRouter(prefix="/estimates", tags=["estimates"])


@router.post(
    "",
    response_model=EstimateView,
    responses=responses(NotAllowed, Conflict),
    openapi_extra=ONCE_HEADER,
)
async def create_estimate(body: ClaimBody, asked: UserAsks) -> Response:
    """When this claim would start, and why not sooner. Nothing is claimed."""
    check_terms(body, asked.service)
    service, request = asked.service, body.to_request()
    command = RequestClaim(caller=asked.caller, request=request)
    imagined = imagine(service.preview(), command)
    told = await service.forecasts.compute(partial(foretell, imagined, service.learning))
    view = _estimate_view(imagined, told, request, service)
    return answers.one(await _the_same(view, asked.once, service))


async def _the_same(view: EstimateView, key: OnceKey | None, service: Service) -> EstimateView:
    """What was answered to this key the first time."""
    if key is None:
        return view

    def answered(unit: UnitOfWork) -> str:
        return once(unit, key, view.model_dump_json)

    return EstimateView.model_validate_json(await service.execute(answered))


def _estimate_view(
    imagined: Imagined, told: Foretold, request: ClaimRequest, service: Service
) -> EstimateView:
    now, wait, claim = service.clock.now(), told.wait, imagined.claim
    deadline, start, expected = request.deadline, told.start, told.expected
    others = (AlternativeView(workers=a.workers, model=a.model) for a in told.alternatives)
    return EstimateView(
        **dict(start_view(start, now)),
        workers=claim.minimum,
        queue=imagined.queue,
        now=told.starts_now,
        place=None if wait is None or wait.never else wait.place,
        constraint="" if wait is None else wait.constraint.value,
        reason="" if wait is None else wait.reason,
        never=wait is not None and wait.never,
        misses_deadline=deadline is not None and misses_deadline(start, expected, deadline),
        expected_s=expected.median_s,
        expected_from="" if expected.median_s is None else str(expected),
        alternatives=tuple(others),
    )
