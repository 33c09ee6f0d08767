"""Requests of somebody else's: passed on as they are, answered as the manager answers."""

from collections.abc import Callable

import httpx
import pytest

from jupyter_gpupool.client import http
from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.http import Http
from jupyter_gpupool.pool.errors import Unavailable

Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def relay_to(address: PoolAddress) -> Callable[[Handler], Http]:
    """Build a connection to a manager that is this function."""
    return lambda handler: Http(address, transport=httpx.MockTransport(handler))


async def test_a_problem_is_an_answer(
    relay_to: Callable[[Handler], Http], problem: Callable[..., httpx.Response]
) -> None:
    """Status and body come back as they are, and nothing is raised."""
    said = problem(409, "conflict")
    reply = await relay_to(lambda _: said).relay("POST", "/claims", content=b"{}")
    assert (reply.status, reply.body) == (409, said.content)


async def test_the_callers_key_is_kept(relay_to: Callable[[Handler], Http]) -> None:
    """Repeated by whoever asked, it is still the same request."""
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        return httpx.Response(200)

    await relay_to(answer).relay("POST", "/claims", content=b"{}", key="theirs")
    assert keys == ["theirs"]


async def test_the_last_503_is_passed_on(
    relay_to: Callable[[Handler], Http],
    problem: Callable[..., httpx.Response],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once patience has ended, the manager's own words are the best there are."""
    monkeypatch.setattr(http, "PATIENCE_S", 0.1)
    reply = await relay_to(lambda _: problem(503, "unavailable")).relay("GET", "/status")
    assert reply.status == 503


async def test_no_answer_is_unavailable(
    relay_to: Callable[[Handler], Http], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to pass on."""
    monkeypatch.setattr(http, "PATIENCE_S", 0.1)

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(Unavailable, match="does not answer"):
        await relay_to(refuse).relay("GET", "/status")
