"""Is the manager well, and its figures for Prometheus."""

from email.utils import formatdate

from fastapi import APIRouter, Response

from jupyter_gpupool.manager.metrics import CONTENT_TYPE
from jupyter_gpupool.pool.errors import Unavailable

from .parts import AnyCaller, Parts, TheParts
from .problems import responses

router = APIRouter(tags=["health"])
_PROVEN_FOR_S = 5.0


@router.get("/health", responses=responses())
async def health(parts: TheParts, response: Response) -> dict[str, str]:
    """Well means that a request can be made durable right now.

    Says what time it is here, for the server does not; and what is wrong although it is well.
    """
    await _prove_writable(parts)
    response.headers["Date"] = formatdate(usegmt=True)
    detail = " ".join(problem.text for problem in parts.service.problems())
    return {"status": "ok", "detail": detail} if detail else {"status": "ok"}


@router.get("/metrics", response_class=Response, responses=responses())
async def metrics(caller: AnyCaller, parts: TheParts) -> Response:  # noqa: ARG001 - a right
    """The pool's figures, as Prometheus text."""
    return Response(parts.metrics.text(), media_type=CONTENT_TYPE)


async def _prove_writable(parts: Parts) -> None:
    service = parts.service
    now_s = service.clock.monotonic()
    if service.has_failed:
        raise Unavailable("The manager's writer has stopped.", hint="Start the manager again.")
    if service.writable and now_s - service.committed_s < _PROVEN_FOR_S:
        return
    await service.store.prove_writable()
    service.writable, service.committed_s = True, now_s
