"""Errors of the Jupyter server's own, in the manager's form."""

import json

import pytest

from jupyter_gpupool.client.errors import error_from
from jupyter_gpupool.pool.errors import (
    BadRequest,
    Conflict,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    PoolError,
    Unavailable,
)
from jupyter_gpupool.server.problems import told

ERRORS = [
    BadRequest("That is no position.", field="after"),
    NotAllowed("That is not yours."),
    NotFound("There is none."),
    Conflict("It has no dashboard yet."),
    Unavailable("This Python lacks fastapi.", hint='Run: pip install "jupyter-gpupool[all]".'),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.reference)
def test_a_client_reads_the_same_error_out_of_it(error: PoolError) -> None:
    """With its sentence and its hint: a script need not know who of the two answered."""
    status, problem = told(error, "/gpupool/api/v1/status")
    read = error_from(status, problem.encode(), "http://127.0.0.1:8888")
    assert (type(read), str(read)) == (type(error), str(error))


def test_a_refused_pool_token_is_no_matter_of_the_browsers_login() -> None:
    """401 would send a person to log in again, which helps nobody."""
    status, problem = told(NotAuthenticated("The token is void."), "/")
    assert (status, json.loads(problem)["status"]) == (503, 503)


def test_an_error_of_no_known_kind_is_told_too() -> None:
    """In its own words."""
    status, problem = told(PoolError("Nobody foresaw this."), "/")
    assert (status, json.loads(problem)["detail"]) == (500, "Nobody foresaw this.")
