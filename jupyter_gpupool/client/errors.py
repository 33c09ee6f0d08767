"""From what the manager answers, or does not answer, to the one tree of errors a user can meet.

Called by `http`, for every answer that is not a success. The tree stands in `pool/errors.py`.
"""

from pydantic import ValidationError

from jupyter_gpupool.pool import errors
from jupyter_gpupool.pool.errors import BadRequest, NotAuthenticated, PoolError, Unavailable
from jupyter_gpupool.protocol.api import Problem

_PREFIX = "urn:gpupool:problem:"
_BY_REFERENCE: dict[str, type[PoolError]] = {
    cls.reference: cls
    for cls in (
        errors.NotAuthenticated,
        errors.NotAllowed,
        errors.NotFound,
        errors.Conflict,
        errors.Unavailable,
        errors.ClaimLost,
    )
}
_BY_STATUS: dict[int, type[PoolError]] = {
    401: errors.NotAuthenticated,
    403: errors.NotAllowed,
    404: errors.NotFound,
    409: errors.Conflict,
}


class Unanswered(Unavailable):
    """The request was sent and no answer of the manager came: it may have been carried out."""


class Cut(Unanswered):
    """The connection broke while the answer was waited for."""


def error_from(status: int, body: bytes, url: str, *, changes: bool = False) -> PoolError:
    """The error that an answer with this status and body stands for.

    Args:
        status: HTTP's.
        body: A problem of the manager's, or whatever else answered on the way.
        url: Who was asked.
        changes: Whether it was asked to change something: then an answer that is not the manager's
            leaves open whether it did.
    """
    try:
        problem = Problem.model_validate_json(body)
    except ValidationError:
        return _not_a_manager(status, url, changes=changes)
    return _from_problem(problem)


def unreachable(url: str, why: str, kind: type[Unavailable] = Unavailable) -> Unavailable:
    """The manager could not be asked at all, or did not answer."""
    return kind(
        f"The pool's manager at {url} does not answer ({why}).",
        hint="Check that it runs, and GPUPOOL_URL.",
    )


def token_refused() -> NotAuthenticated:
    """The manager does not know the token that was shown, whatever its words for that."""
    return NotAuthenticated(
        "The pool's manager does not accept your token: it is wrong, expired or revoked.",
        hint="Put a valid one into GPUPOOL_TOKEN, or into the file that GPUPOOL_TOKEN_FILE names.",
    )


def unverified(url: str, why: str) -> Unavailable:
    """Whoever answers there cannot prove to be the manager."""
    return Unavailable(
        f"The certificate of the pool's manager at {url} cannot be verified ({why}).",
        hint="Set GPUPOOL_CA to the file of the authority that signed it.",
    )


def _from_problem(problem: Problem) -> PoolError:
    message = problem.detail or problem.title
    cls = _BY_REFERENCE.get(problem.type.removeprefix(_PREFIX)) or _BY_STATUS.get(problem.status)
    if cls is NotAuthenticated:
        return token_refused()
    if cls is not None:
        return cls(message, hint=problem.hint)
    if 400 <= problem.status < 500:  # noqa: PLR2004 - HTTP's own bounds
        return BadRequest(message, field=problem.field, hint=problem.hint)
    return Unavailable(message, hint=problem.hint)


def _not_a_manager(status: int, url: str, *, changes: bool) -> PoolError:
    cls = Unanswered if changes else _BY_STATUS.get(status, Unavailable)
    return cls(
        f"{url} answered with status {status}, and not as a pool's manager does.",
        hint="Check GPUPOOL_URL, and proxies on the way.",
    )
