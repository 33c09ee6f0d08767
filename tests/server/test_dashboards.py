"""A real scheduler's dashboard through a real Jupyter server."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

pytestmark = pytest.mark.e2e


@pytest.fixture
def page_path(browser: httpx.Client, running_claim: dict[str, Any]) -> str:
    """Where the claim's owner is sent: the path with a ticket."""
    answer = browser.get(f"gpupool/dashboards/{running_claim['id']}")
    assert answer.status_code == 302, answer.text
    return str(answer.headers["Location"])


@pytest.fixture
def page(server: Any) -> Iterator[httpx.Client]:
    """What a page in a sandbox is: it has no cookie, and its origin is "null"."""
    with httpx.Client(
        base_url=f"http://127.0.0.1:{server.port}", headers={"Origin": "null"}, timeout=60
    ) as client:
        yield client


def test_the_page_is_served_in_a_sandbox(page: httpx.Client, page_path: str) -> None:
    """Without an origin of its own it can read nothing of Jupyter's."""
    answer = page.get(page_path)
    rules = answer.headers["Content-Security-Policy"]
    assert answer.status_code == 200
    assert "sandbox allow-scripts" in rules
    assert "allow-same-origin" not in rules


def test_every_part_of_the_page_is_found(page: httpx.Client, page_path: str) -> None:
    """Its scripts and styles, with nothing but the ticket in their path."""
    text = page.get(page_path).text
    parts = re.findall(r'<(?:script src|link rel="[a-z ]+" href)="([^"]+)"', text)
    answers = {part: page.get(str(httpx.URL(page_path).join(part))) for part in parts}
    assert parts
    assert {answer.status_code for answer in answers.values()} == {200}


def test_bokehs_socket_is_joined_with_the_scheduler(
    server: Any, page: httpx.Client, page_path: str
) -> None:
    """Its subprotocol is agreed on, and it speaks first, as Bokeh does."""
    token = re.search(r'"token":"([^"]+)"', page.get(page_path).text)
    assert token is not None
    with connect(
        f"ws://127.0.0.1:{server.port}{page_path}/ws",
        origin="null",  # type: ignore[arg-type]
        subprotocols=["bokeh", token[1]],  # type: ignore[list-item]
        proxy=None,
    ) as socket:
        first = json.loads(socket.recv(30))
        assert (socket.subprotocol, first["msgtype"]) == ("bokeh", "ACK")


def test_a_ticket_of_another_claim_opens_no_socket(
    server: Any, page_path: str, running_claim: dict[str, Any]
) -> None:
    """Nor does a guessed one."""
    path = page_path.replace(running_claim["id"], "c-other")
    url = f"ws://127.0.0.1:{server.port}{path}/ws"
    with pytest.raises(InvalidStatus) as refused, connect(url, proxy=None):
        pass
    assert refused.value.response.status_code == 403


def test_an_old_tickets_page_is_opened_anew(
    browser: httpx.Client, page: httpx.Client, page_path: str
) -> None:
    """Whoever is logged in gets a fresh one; whoever is not is asked to log in."""
    old = page.get(re.sub(r"~[^/]+", "~old", page_path))
    assert old.next_request is not None
    door = str(old.next_request.url)
    assert "~" not in door
    assert browser.get(door).headers["Location"].endswith("/status")
    assert "/login" in page.get(door).headers["Location"]


def test_a_strangers_claim_is_not_found(
    browser: httpx.Client, manager: httpx.Client, strangers_claim: str
) -> None:
    """Even for the pool's admin: the manager shows a dashboard to its owner alone."""
    answer = browser.get(f"gpupool/dashboards/{strangers_claim}")
    assert answer.status_code == manager.get(f"/claims/{strangers_claim}/connection").status_code
    assert answer.status_code in (403, 404)


def test_a_claim_that_is_over_says_so(browser: httpx.Client, running_claim: dict[str, Any]) -> None:
    """In a sentence, not a traceback."""
    browser.post(f"gpupool/api/v1/claims/{running_claim['id']}/release", json={})
    answer = browser.get(f"gpupool/dashboards/{running_claim['id']}")
    assert answer.status_code == 409
    assert "there is nothing to connect to" in answer.text


def test_nothing_of_the_login_reaches_the_page(
    browser: httpx.Client, running_claim: dict[str, Any], login: dict[str, str]
) -> None:
    """Not even where somebody came with the token in the address."""
    params = {"token": login["Authorization"].split()[1], "theme": "dark"}
    sent = browser.get(f"gpupool/dashboards/{running_claim['id']}/status", params=params)
    assert sent.headers["Location"].endswith("/status?theme=dark")


@pytest.fixture
def strangers_claim(manager: httpx.Client) -> Iterator[str]:
    """A claim of another user of the pool."""
    made = manager.post("/tokens", json={"user": "bob"}).json()
    with httpx.Client(
        base_url=manager.base_url, headers={"Authorization": f"Bearer {made['secret']}"}
    ) as bob:
        claim: str = bob.post("/claims", json={"workers": {"min": 1, "max": 1}}).json()["id"]
        yield claim
        bob.post(f"/claims/{claim}/release", json={})
