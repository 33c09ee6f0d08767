"""Errors as answers: the only file that knows status codes.

Every error of ours becomes an RFC 9457 problem; so do the framework's own. What nobody foresaw is
logged in full and told in one sentence.
"""

import logging
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from jupyter_gpupool.pool.errors import (
    BadRequest,
    ClaimLost,
    Conflict,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    PoolError,
    Unavailable,
)
from jupyter_gpupool.protocol.api import Problem

_LOG = logging.getLogger(__name__)
_TYPE = "urn:gpupool:problem:"
_MEDIA = "application/problem+json"

CREATED, NO_CONTENT, UNWELL = 201, 204, 503
_INTERNAL = 500
_STATUS: Sequence[tuple[type[PoolError], int, str]] = (
    (BadRequest, 422, "Bad request"),
    (NotAuthenticated, 401, "Not authenticated"),
    (NotAllowed, 403, "Not allowed"),
    (NotFound, 404, "Not found"),
    (Conflict, 409, "Conflict"),
    (ClaimLost, 410, "Claim lost"),
    (Unavailable, UNWELL, "Unavailable"),
    (PoolError, _INTERNAL, "Pool error"),
)
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, UNWELL: {"Retry-After": "2"}}
_FRAMEWORK = {
    404: NotFound("There is no such path.", hint="See /api/v1/openapi.json."),
    405: BadRequest("This path has no such method.", hint="See /api/v1/openapi.json."),
    413: BadRequest("The request is too large.", hint="Send less than 1 MiB."),
}


def responses(*errors: type[PoolError]) -> dict[int | str, dict[str, Any]]:
    """The problems a route can answer with, for its declaration."""
    every = (*errors, NotAuthenticated, NotAllowed, BadRequest, Unavailable)
    return {
        status: {"description": title, "content": {_MEDIA: {"schema": _SCHEMA}}}
        for kind, status, title in _STATUS
        if kind in every
    }


_SCHEMA = {"$ref": "#/components/schemas/Problem"}


def problem(error: PoolError, path: str, *, status: int | None = None) -> Response:
    """An error as an answer."""
    found, title = next((s, t) for kind, s, t in _STATUS if isinstance(error, kind))
    code = found if status is None else status
    body = Problem(
        type=f"{_TYPE}{error.reference}",
        title=title,
        status=code,
        detail=_sendable(error.message),
        hint=error.hint,
        field=_sendable(getattr(error, "field", "")),
        instance=path,
    )
    headers = _HEADERS.get(code)
    return Response(body.model_dump_json(), code, headers=headers, media_type=_MEDIA)


def _sendable(text: str) -> str:
    # It may repeat a term of the caller's that is no text.
    return text.encode(errors="backslashreplace").decode()


def install(app: FastAPI) -> None:
    """Have every error leave as a problem."""
    app.add_exception_handler(PoolError, _pool_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(WebSocketRequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(Exception, _unforeseen)


async def _pool_error(connection: HTTPConnection, error: Exception) -> Response:
    assert isinstance(error, PoolError), "registered for this type alone"
    return await _answer(connection, problem(error, connection.url.path))


async def _invalid(connection: HTTPConnection, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError | WebSocketRequestValidationError)
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("body", "query", "path", "header")]
    # What is no JSON has a position, which is no field.
    field = "" if first["type"] == "json_invalid" else ".".join(place)
    message = f"{field or 'The body'}: {first['msg']}."
    # A term's own sentence is enough for whoever has never heard of HTTP.
    bad = BadRequest(message, field=field, hint="" if field else "See /api/v1/openapi.json.")
    return await _answer(connection, problem(bad, connection.url.path))


async def _framework(connection: HTTPConnection, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for this type alone"
    known = _FRAMEWORK.get(error.status_code, BadRequest(str(error.detail)))
    answer = problem(known, connection.url.path, status=error.status_code)
    answer.headers.update(error.headers or {})
    return await _answer(connection, answer)


async def _unforeseen(request: Request, error: Exception) -> Response:
    _LOG.error("Nobody foresaw this in %s", request.url.path, exc_info=error)
    told = PoolError("The manager failed on this request.", hint="Its log says why.")
    return problem(told, request.url.path)


async def _answer(connection: HTTPConnection, answer: Response) -> Response:
    if isinstance(connection, WebSocket):
        await connection.send_denial_response(answer)
    return answer
