"""Which requests a browser may have passed on to the manager."""

import pytest

from jupyter_gpupool.server.allowed import is_allowed, passed_on


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/status"),
        ("GET", "/environments"),
        ("GET", "/hosts"),
        ("GET", "/devices"),
        ("GET", "/events"),
        ("GET", "/claims"),
        ("POST", "/claims"),
        ("GET", "/claims/c-1"),
        ("POST", "/claims/c-1/scale"),
        ("POST", "/claims/c-1/release"),
        ("POST", "/claims/c-1/keep_alive"),
        ("GET", "/claims/c-1/explanation"),
        ("POST", "/estimates"),
        ("GET", "/reservations"),
        ("GET", "/claims/c-1/logs"),
        ("PUT", "/claims/c-1/kernels/k-1"),
        ("DELETE", "/claims/c-1/kernels/k-1"),
        ("GET", "/policy"),
        ("GET", "/policy/revisions"),
        ("GET", "/policy/revisions/7"),
        ("GET", "/policy/diff"),
        ("POST", "/policy/check"),
    ],
)
def test_what_a_user_needs_is_passed_on(method: str, path: str) -> None:
    """The sidebar and scripts have nothing else."""
    assert is_allowed(method, path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/reservations"),
        ("GET", "/demand"),
        ("GET", "/tokens"),
        ("POST", "/tokens"),
        ("DELETE", "/tokens/t-1"),
        ("GET", "/claims/c-1/connection"),
        ("POST", "/kernels/activity"),
        ("GET", "/agents/link"),
        ("GET", "/openapi.json"),
        ("PATCH", "/claims/c-1"),
        ("DELETE", "/claims/c-1"),
        ("POST", "/policy/apply"),
        ("POST", "/policy/rollback"),
        ("GET", "/policy/revisions/7/source"),
        ("GET", "/policy/revisions/-1"),
    ],
)
def test_secrets_and_all_else_are_not(method: str, path: str) -> None:
    """A route is passed on because it is on the list, never because nobody thought of it."""
    assert not is_allowed(method, path)


@pytest.mark.parametrize(
    "path",
    [
        "/claims/../tokens",
        "/claims/%2e%2e/tokens",
        "/claims/c-1/logs/../connection",
        "/claims/c-1%2Fconnection",
        "/claims//connection",
        "/claims/c-1/logs\n",
        "/status/",
        "//tokens",
        "/claims/c-1;/connection",
    ],
)
def test_no_spelling_leads_around_the_list(path: str) -> None:
    """What is matched is what the manager reads."""
    assert not is_allowed("GET", path)


def test_jupyters_own_part_of_a_query_stays_here() -> None:
    """The Jupyter token opens all of a user's files: the manager never sees it."""
    query = "ended=true&token=secret&_xsrf=x&start=false&1732999999&limit=5"
    assert passed_on(query) == {"ended": "true", "limit": "5"}
