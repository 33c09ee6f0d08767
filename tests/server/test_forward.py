"""The manager's API through a real Jupyter server, and who may use it."""

import json
import uuid
from typing import Any

import httpx
import pytest

from jupyter_gpupool.client.embedded import EmbeddedPool
from jupyter_gpupool.server import dashboards, event_stream, forward

pytestmark = pytest.mark.e2e
API = "gpupool/api/v1"
EXAMPLES = {
    forward.ForwardHandler: [
        ("GET", f"{API}/status"),
        ("POST", f"{API}/claims"),
        ("PUT", f"{API}/claims/c-1/kernels/k-1"),
        ("DELETE", f"{API}/claims/c-1/kernels/k-1"),
        ("GET", f"{API}/policy"),
        ("GET", f"{API}/policy/revisions"),
        ("POST", f"{API}/policy/check"),
        ("GET", f"{API}/no/such/route"),
    ],
    event_stream.EventStreamHandler: [("GET", f"{API}/events/stream")],
    dashboards.DashboardDoor: [
        ("GET", "gpupool/dashboards/c-1"),
        ("GET", "gpupool/dashboards/c-1/status"),
    ],
    dashboards.DashboardPage: [("GET", "gpupool/dashboards/c-1/~guessed/status")],
}
REQUESTS = [(method, path) for examples in EXAMPLES.values() for method, path in examples]
DENY = """
from jupyter_server.auth import Authorizer
class OnlyFiles(Authorizer):
    def is_authorized(self, handler, user, action, resource):
        return resource != "gpupool"
c.ServerApp.authorizer_class = OnlyFiles
"""


def test_every_handler_has_an_example_here() -> None:
    """A new route is tried with strangers, or this fails."""
    routes = (*event_stream.ROUTES, *forward.ROUTES, *dashboards.routes(None))
    assert {route[1] for route in routes} == EXAMPLES.keys()


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_a_stranger_gets_nowhere(server: Any, method: str, path: str) -> None:
    """Refused, or sent to the login page, where a person came by a link."""
    with server.client() as stranger:
        answer = stranger.request(method, path)
        while answer.has_redirect_location and "/login" not in answer.headers["Location"]:
            answer = stranger.send(answer.next_request)
    assert answer.status_code in (401, 403) or "/login" in answer.headers["Location"]


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_an_authorizer_that_says_no_is_obeyed(
    denying_server: Any, login: dict[str, str], method: str, path: str
) -> None:
    """Whoever runs the server decides who uses its user's pool."""
    with denying_server.client(**login) as browser:
        answer = browser.request(method, path)
        while answer.has_redirect_location:
            answer = browser.send(answer.next_request)
    assert answer.status_code == 403


@pytest.fixture(scope="module")
def denying_server(start_server: Any, runtime_folder: Any) -> Any:
    """A server whose authorizer lets nobody at the pool."""
    return start_server(runtime_folder, config=DENY)


def test_an_answer_is_the_managers_own(browser: httpx.Client, manager: httpx.Client) -> None:
    """Byte by byte, under any address and user name."""
    assert browser.get(f"{API}/devices").content == manager.get("/devices").content


def test_a_problem_is_the_managers_own(browser: httpx.Client, manager: httpx.Client) -> None:
    """With its status, its type and its hint."""
    here, there = browser.get(f"{API}/claims/c-none"), manager.get("/claims/c-none")
    assert here.status_code == there.status_code == 404
    assert here.content == there.content
    assert here.headers["Content-Type"] == "application/problem+json"


def test_what_is_not_passed_on_is_a_problem_too(browser: httpx.Client) -> None:
    """Tokens are made elsewhere."""
    answer = browser.post(f"{API}/tokens", json={})
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:gpupool:problem:not-found")


def test_what_is_too_large_is_not_passed_on(browser: httpx.Client) -> None:
    """The manager takes a mebibyte."""
    answer = browser.post(f"{API}/claims", content=b" " * (1024 * 1024 + 1))
    assert (answer.status_code, answer.json()["detail"]) == (422, "The request is too large.")


def test_the_same_key_makes_the_same_claim(browser: httpx.Client) -> None:
    """A browser that asks again, for it heard nothing, gets no second one."""
    body, key = {"workers": {"min": 1, "max": 1}}, {"Idempotency-Key": uuid.uuid4().hex}
    first, second = (browser.post(f"{API}/claims", json=body, headers=key) for _ in range(2))
    browser.post(f"{API}/claims/{first.json()['id']}/release", json={})
    assert first.json()["id"] == second.json()["id"]


def test_no_answer_holds_the_pools_token(browser: httpx.Client, pool: EmbeddedPool) -> None:
    """The browser needs none, and must have none."""
    assert pool.address is not None
    for path in ("status", "claims?ended=true", "hosts", "devices", "events", "claims/c-none"):
        answer = browser.get(f"{API}/{path}")
        assert pool.address.token not in f"{answer.text}{json.dumps(dict(answer.headers))}"


def test_a_user_who_is_no_admin_sees_the_queues_and_no_document(
    start_server: Any,
    pool: EmbeddedPool,
    manager: httpx.Client,
    login: dict[str, str],
    tmp_path: Any,
) -> None:
    """The manager decides it by the token that this server holds."""
    assert pool.address is not None
    made = manager.post("/tokens", json={"role": "user", "user": "guest"}).json()
    guest = {"GPUPOOL_URL": pool.address.url, "GPUPOOL_TOKEN": made["secret"]}
    with start_server(tmp_path, **guest).client(**login) as browser:
        seen = browser.get(f"{API}/policy")
        assert (seen.status_code, seen.json()["applied"]) == (200, None)
        for path in ("policy/revisions", "policy/revisions/0", "policy/diff"):
            assert browser.get(f"{API}/{path}").status_code == 403
        assert browser.post(f"{API}/policy/check", json={"source": ""}).status_code == 403


def test_an_admin_sees_the_document_and_its_history(
    browser: httpx.Client, manager: httpx.Client
) -> None:
    """As the manager tells them; changing it is not passed on."""
    for path in ("policy/revisions", "policy/revisions/0", "policy/diff"):
        here, there = browser.get(f"{API}/{path}"), manager.get(f"/{path}")
        assert (here.status_code, here.content) == (200, there.content)
    assert browser.post(f"{API}/policy/apply", json={"source": ""}).status_code == 404


def test_a_request_that_another_site_made_is_refused(server: Any, login: dict[str, str]) -> None:
    """By cookie alone, without the page's own token against forgery, nothing is changed."""
    with server.client() as visitor:
        visitor.get("tree", params={"token": login["Authorization"].split()[1]})
        assert visitor.get(f"{API}/status").status_code == 200
        assert visitor.post(f"{API}/claims", json={}).status_code == 403


def test_no_pool_is_a_sentence_and_starts_none(
    start_server: Any, login: dict[str, str], tmp_path: Any
) -> None:
    """What only looks at a pool that does not run is told how it would start."""
    with start_server(tmp_path).client(**login) as browser:
        answer = browser.get(f"{API}/status", params={"start": "false"})
    assert (answer.status_code, answer.json()["hint"]) == (503, "It starts with the first claim.")
    assert not list(tmp_path.glob("gpupool-*"))


def test_a_manager_that_is_silent_is_a_sentence(
    start_server: Any, login: dict[str, str], tmp_path: Any
) -> None:
    """Told as a problem, after some tries, and the server lives on."""
    nowhere = {"GPUPOOL_URL": "http://127.0.0.1:9", "GPUPOOL_TOKEN": "gpt_x"}
    with start_server(tmp_path, **nowhere).client(**login) as browser:
        answer = browser.get(f"{API}/status")
        assert (answer.status_code, answer.json()["type"]) == (
            503,
            "urn:gpupool:problem:unavailable",
        )
        assert "does not answer" in answer.json()["detail"]


def test_a_server_that_is_killed_and_started_again_goes_on(
    start_server: Any, runtime_folder: Any, login: dict[str, str], running_claim: dict[str, Any]
) -> None:
    """The claim never noticed, and the next server knows it."""
    first = start_server(runtime_folder)
    first.process.kill()
    first.process.wait()
    with start_server(runtime_folder).client(**login) as browser:
        seen = browser.get(f"{API}/claims/{running_claim['id']}").json()
    assert seen["phase"] == "running"
