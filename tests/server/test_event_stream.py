"""The pool's events in the browser: several sockets, one stream, nothing missed."""

import json
import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from jupyter_gpupool.client.embedded import EmbeddedPool

pytestmark = pytest.mark.e2e
Open = Callable[..., AbstractContextManager[ClientConnection]]


@pytest.fixture
def open_stream(server: Any, login: dict[str, str]) -> Open:
    """Open the event stream of a server."""

    def start(query: str = "", *, of: Any = server) -> ClientConnection:
        url = f"{of.socket_url}gpupool/api/v1/events/stream{query}"
        return connect(url, additional_headers=login, open_timeout=60, proxy=None)

    return start


def test_what_happens_is_told_to_every_socket(open_stream: Open, browser: httpx.Client) -> None:
    """In the manager's own words."""
    now = browser.get("gpupool/api/v1/status").json()["seq"]
    with open_stream(f"?after={now}") as one, open_stream(f"?after={now}") as two:
        made = _make_and_release(browser)
        heard = [_first_of(socket, made) for socket in (one, two)]
    assert heard[0] == heard[1]
    assert heard[0]["kind"] == "claim.pending"


def test_who_comes_again_with_after_misses_nothing(
    open_stream: Open, browser: httpx.Client
) -> None:
    """Also when nobody listened meanwhile."""
    now = browser.get("gpupool/api/v1/status").json()["seq"]
    made = _make_and_release(browser)
    with open_stream(f"?after={now}") as socket:
        assert _first_of(socket, made)["kind"] == "claim.pending"


def test_one_claims_events_can_be_had_alone(open_stream: Open, browser: httpx.Client) -> None:
    """Others' are not sent at all."""
    now = browser.get("gpupool/api/v1/status").json()["seq"]
    _make_and_release(browser)
    made = _make_and_release(browser)
    with open_stream(f"?after={now}&claim={made}") as socket:
        assert json.loads(socket.recv(30))["claim_id"] == made


@pytest.mark.parametrize("after", ["-1", "x", "1" * 30, "1.5"])
def test_a_start_that_is_none_is_refused(open_stream: Open, after: str) -> None:
    """With a status, before anything is opened."""
    with pytest.raises(InvalidStatus) as refused, open_stream(f"?after={after}"):
        pass
    assert refused.value.response.status_code == 422


def test_a_manager_that_dies_sends_the_browser_to_come_again(
    open_stream: Open, start_server: Any, tmp_path: Path
) -> None:
    """So it knows that it hears nothing, and asks what is wrong."""
    with EmbeddedPool(tmp_path / "pool", options=("--simulated=1",)) as pool:
        assert pool.address is not None
        named = {"GPUPOOL_URL": pool.address.url, "GPUPOOL_TOKEN": pool.address.token}
        server = start_server(tmp_path / "runtime", **named)
        with open_stream(of=server) as socket:
            os.kill(pool.address.manager_pid or 0, signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as closed:
                _read_to_the_end(socket)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012


def test_a_server_ends_while_it_is_listened_to(
    open_stream: Open, start_server: Any, runtime_folder: Path
) -> None:
    """It closes its sockets, and no extension says that it could not."""
    server = start_server(runtime_folder)
    with open_stream(of=server) as socket:
        server.process.terminate()
        with pytest.raises(ConnectionClosed):
            socket.recv(60)
    assert server.process.wait(60) == 0
    assert "Traceback" not in server.log.read_text()


def _make_and_release(browser: httpx.Client) -> str:
    body = {"workers": {"min": 1, "max": 1}}
    made: str = browser.post("gpupool/api/v1/claims", json=body).json()["id"]
    browser.post(f"gpupool/api/v1/claims/{made}/release", json={})
    return made


def _first_of(socket: ClientConnection, claim_id: str) -> dict[str, Any]:
    while (event := json.loads(socket.recv(30))).get("claim_id") != claim_id:
        pass
    return dict(event)


def _read_to_the_end(socket: ClientConnection) -> None:
    while True:
        socket.recv(60)
