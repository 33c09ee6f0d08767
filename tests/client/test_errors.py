"""What a manager says becomes the one tree of errors."""

import json

import pytest

from jupyter_gpupool.client.errors import Unanswered, error_from, unreachable
from jupyter_gpupool.pool import errors
from jupyter_gpupool.pool.errors import BadRequest, PoolError, Unavailable

URL = "http://127.0.0.1:9"


def _problem(status: int, reference: str, **more: str) -> bytes:
    body = {"type": f"urn:gpupool:problem:{reference}", "title": "T", "status": status}
    return json.dumps({**body, "detail": "What happened.", **more}).encode()


@pytest.mark.parametrize(
    ("status", "reference", "expected"),
    [
        (400, "bad-request", errors.BadRequest),
        (422, "validation", errors.BadRequest),
        (403, "not-allowed", errors.NotAllowed),
        (404, "not-found", errors.NotFound),
        (409, "conflict", errors.Conflict),
        (409, "impossible-transition", errors.Conflict),
        (503, "unavailable", errors.Unavailable),
        (500, "internal", errors.Unavailable),
        (410, "claim-lost", errors.ClaimLost),
    ],
)
def test_each_problem_has_its_class(status: int, reference: str, expected: type[PoolError]) -> None:
    """By reference first, by status for references this version does not know."""
    error = error_from(status, _problem(status, reference, hint="Do this."), URL)
    assert type(error) is expected
    assert str(error) == "What happened. Do this."


def test_every_error_of_the_pool_has_a_home() -> None:
    """No direct child of PoolError is left to be guessed by its status."""
    known = {error_from(499, _problem(499, cls.reference), URL).__class__ for cls in _children()}
    assert known == set(_children())


def test_refused_term_is_named() -> None:
    """The field survives the wire."""
    error = error_from(422, _problem(422, "bad-request", field="workers"), URL)
    assert isinstance(error, BadRequest)
    assert error.field == "workers"


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"{}", b"\xff"])
def test_answer_of_something_else_is_said_to_be_one(body: bytes) -> None:
    """A proxy's page is no traceback and no raw HTML."""
    error = error_from(502, body, URL)
    assert isinstance(error, Unavailable)
    assert "not as a pool's manager" in str(error)


@pytest.mark.parametrize("status", [200, 302, 401, 404, 409, 502])
def test_answer_of_something_else_to_a_change_leaves_it_open(status: int) -> None:
    """The manager may have done it: a proxy's words for it decide nothing."""
    assert isinstance(error_from(status, b"<html>", URL, changes=True), Unanswered)


def test_silence_is_one_sentence_with_a_hint() -> None:
    """Connection refused says where and what to check."""
    error = unreachable(URL, "connection refused")
    assert error.message.count("\n") == 0
    assert URL in error.message
    assert "GPUPOOL_URL" in error.hint


def _children() -> list[type[PoolError]]:
    return [cls for cls in PoolError.__subclasses__() if cls.__module__ == errors.__name__]


def test_refused_token_is_told_in_the_users_words() -> None:
    """Where the token comes from, not what HTTP calls it."""
    error = error_from(401, _problem(401, "not-authenticated", hint="Send a header."), URL)
    assert isinstance(error, errors.NotAuthenticated)
    assert "GPUPOOL_TOKEN_FILE" in error.hint
    assert "header" not in str(error)
