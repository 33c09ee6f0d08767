"""One connection to a manager: repeats that are safe, errors that are sentences."""

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.background import saying
from jupyter_gpupool.client.errors import Unanswered
from jupyter_gpupool.client.http import Http
from jupyter_gpupool.client.pool_client import PoolClient
from jupyter_gpupool.manager.certificates import make_secrets
from jupyter_gpupool.pool.errors import BadRequest, Conflict, NotFound, Unavailable
from jupyter_gpupool.protocol.api import ClaimBody, ReleaseBody, Workers

PATIENCE_S = 0.2


async def test_token_goes_into_the_header_alone(address: PoolAddress) -> None:
    """Never into the URL, where logs would keep it."""
    seen: list[httpx.Request] = []
    http = Http(address, transport=httpx.MockTransport(lambda r: _ok(seen, r)))
    await http.send("GET", "/status")
    assert seen[0].headers["Authorization"] == "Bearer gpt_secret"
    assert "gpt_secret" not in str(seen[0].url)
    await http.close()


async def test_broken_post_is_repeated_with_its_key(address: PoolAddress) -> None:
    """The manager can tell that it is the same request."""
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) < 3:
            raise httpx.ReadError("connection reset")
        return httpx.Response(200, content=b"{}")

    http = Http(address, transport=httpx.MockTransport(answer))
    await http.send("POST", "/claims/c-1/release", body=ReleaseBody())
    assert len(keys) == 3
    assert len(set(keys)) == 1
    await http.close()


async def test_different_posts_have_different_keys(address: PoolAddress) -> None:
    """A second claim is a second claim."""
    seen: list[httpx.Request] = []
    http = Http(address, transport=httpx.MockTransport(lambda r: _ok(seen, r)))
    await http.send("POST", "/x", body=ReleaseBody())
    await http.send("POST", "/x", body=ReleaseBody())
    assert len({request.headers["Idempotency-Key"] for request in seen}) == 2
    await http.close()


async def test_refused_connection_is_unavailable_once_patience_ends() -> None:
    """Nobody listens on port 9: one sentence, no traceback of a library."""
    http = Http(PoolAddress(url="http://127.0.0.1:9", token="t"))
    with pytest.raises(Unavailable, match="does not answer"):
        await http.send("GET", "/status", patience_s=0)
    await http.close()


async def test_what_the_manager_refuses_is_not_repeated(
    address: PoolAddress, problem: Callable[..., httpx.Response]
) -> None:
    """A conflict stays a conflict however often it is asked."""
    tries: list[int] = []

    def answer(_request: httpx.Request) -> httpx.Response:
        tries.append(1)
        return problem(409, "conflict")

    http = Http(address, transport=httpx.MockTransport(answer))
    with pytest.raises(Conflict):
        await http.send("POST", "/x", body=ReleaseBody())
    assert len(tries) == 1
    await http.close()


async def test_manager_that_cannot_now_is_asked_again(
    address: PoolAddress, problem: Callable[..., httpx.Response]
) -> None:
    """503 means that nothing was changed: the next try may work."""
    answers = [problem(503, "unavailable"), httpx.Response(200, content=b"well")]
    http = Http(address, transport=httpx.MockTransport(lambda _request: answers.pop(0)))
    assert await http.send("GET", "/status") == b"well"
    await http.close()


async def test_answer_of_another_version_is_a_sentence(address: PoolAddress) -> None:
    """A body that is no view of ours is no traceback of pydantic."""
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, json={"odd": 1}))
    client = PoolClient(address, transport=transport)
    with pytest.raises(Unavailable, match="StatusView"):
        await client.status()
    await client.close()


async def test_name_in_a_path_stays_a_name(
    address: PoolAddress, problem: Callable[..., httpx.Response]
) -> None:
    """A claim called ../tokens asks for no token."""
    seen: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path)
        return problem(404, "not-found")

    client = PoolClient(address, transport=httpx.MockTransport(answer))
    with pytest.raises(NotFound):
        await client.claim("../tokens")
    assert seen == [b"/api/v1/claims/%2E%2E%2Ftokens"]
    await client.close()


async def test_request_that_was_sent_is_not_said_to_have_failed(address: PoolAddress) -> None:
    """Its answer is lost; what it asked for may have been done, whatever comes after."""
    failures = [httpx.ReadTimeout("slow"), *[httpx.ConnectError("gone")] * 99]

    def fail(_request: httpx.Request) -> httpx.Response:
        raise failures.pop(0)

    http = Http(address, transport=httpx.MockTransport(fail))
    with pytest.raises(Unanswered, match="slow"):
        await http.send("POST", "/claims", patience_s=0.2)
    with pytest.raises(Unavailable) as never_sent:
        await http.send("POST", "/claims", patience_s=0)
    assert not isinstance(never_sent.value, Unanswered)
    await http.close()


async def test_proxy_that_does_not_reach_the_manager_is_asked_again(address: PoolAddress) -> None:
    """With the same key: it may be there again in a moment."""
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        return httpx.Response(502 if len(keys) == 1 else 200, content=b"well")

    http = Http(address, transport=httpx.MockTransport(answer))
    assert await http.send("POST", "/claims") == b"well"
    assert len(keys) == 2
    assert len(set(keys)) == 1
    await http.close()


@pytest.mark.parametrize("status", [302, 403, 500, 502])
async def test_proxys_answer_to_a_change_is_none(address: PoolAddress, status: int) -> None:
    """The manager may have granted what it was asked for."""
    transport = httpx.MockTransport(lambda _r: httpx.Response(status, content=b"<html>"))
    http = Http(address, transport=transport)
    with pytest.raises(Unanswered, match=f"status {status}"):
        await http.send("POST", "/claims", patience_s=0)
    await http.close()


async def test_later_failure_does_not_undo_a_proxys_answer(address: PoolAddress) -> None:
    """The first try may have been carried out behind it."""

    def answer(_request: httpx.Request) -> httpx.Response:
        if answers:
            return answers.pop()
        raise httpx.ConnectError("gone")

    answers = [httpx.Response(502, content=b"<html>")]
    http = Http(address, transport=httpx.MockTransport(answer))
    with pytest.raises(Unanswered, match="status 502"):
        await http.send("POST", "/claims", patience_s=PATIENCE_S)
    await http.close()


@pytest.mark.parametrize("page", [b"<html>Log in</html>", b'{"a": 1}'])
async def test_page_instead_of_a_claim_is_no_answer(address: PoolAddress, page: bytes) -> None:
    """A login page says 200, and still nobody knows what became of the claim."""
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, content=page))
    client = PoolClient(address, transport=transport)
    with pytest.raises(Unanswered):
        await client.request_claim(ClaimBody(workers=Workers(min=1, max=1)))
    await client.close()


async def test_reading_is_given_up_sooner_than_changing(address: PoolAddress) -> None:
    """It can be asked again at any time; what changes something may be under way."""
    limits: dict[str, float] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        limits[f"{request.method} {request.url.path}"] = request.extensions["timeout"]["read"]
        return httpx.Response(200)

    http = Http(address, transport=httpx.MockTransport(answer))
    for method, path in (("GET", "/x"), ("GET", "/usage"), ("POST", "/x")):
        await http.send(method, path)
    assert limits == {"GET /api/v1/x": 10, "GET /api/v1/usage": 30, "POST /api/v1/x": 30}
    await http.close()


async def test_whoever_waits_hears_that_nobody_answers(
    address: PoolAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is so, and not when all is over."""
    monkeypatch.setattr("jupyter_gpupool.client.http._SILENT_FOR_S", 0.01)
    told = asyncio.Event()
    words: list[str] = []
    saying.set(lambda text: (words.append(text), told.set())[0])

    async def answer(_request: httpx.Request) -> httpx.Response:
        await told.wait()
        return httpx.Response(200, content=b"well")

    http = Http(address, transport=httpx.MockTransport(answer))
    async with asyncio.timeout(10):
        assert await http.send("GET", "/x") == b"well"
    assert words == [f"The pool's manager at {address.base} does not answer; still waiting for it."]
    await http.close()


async def test_what_cannot_be_sent_is_refused(address: PoolAddress) -> None:
    """Bytes from a command line that are no text are no traceback."""
    http = Http(address, transport=httpx.MockTransport(lambda r: _ok([], r)))
    with pytest.raises(BadRequest, match="no text"):
        await http.send("GET", "/claims", params={"owner": "\udcff"})
    await http.close()


async def test_too_long_a_name_is_said_to_be_one(address: PoolAddress) -> None:
    """It is text all the same."""
    client = PoolClient(address, transport=httpx.MockTransport(lambda r: _ok([], r)))
    with pytest.raises(BadRequest, match="too long"):
        await client.claim("x" * 100_000)
    await client.close()


async def test_post_that_is_cut_late_is_repeated_with_its_key(address: PoolAddress) -> None:
    """Waiting for an answer is not impatience: the key makes another try safe."""
    keys: list[str] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            await asyncio.sleep(2 * PATIENCE_S)
            raise httpx.RemoteProtocolError("cut")
        return httpx.Response(200, content=b"well")

    http = Http(address, transport=httpx.MockTransport(answer))
    assert await http.send("POST", "/claims", patience_s=PATIENCE_S) == b"well"
    assert len(keys) == 2
    assert len(set(keys)) == 1
    await http.close()


async def test_manager_that_cuts_every_answer_is_given_up(address: PoolAddress) -> None:
    """Patience ends all the same."""

    def cut(_request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("cut")

    http = Http(address, transport=httpx.MockTransport(cut))
    with pytest.raises(Unanswered, match="cut"):
        async with asyncio.timeout(10):
            await http.send("POST", "/claims", patience_s=PATIENCE_S)
    await http.close()


async def test_body_that_cannot_be_written_is_refused(address: PoolAddress) -> None:
    """However it was made: one sentence, before anything is sent."""
    http = Http(address, transport=httpx.MockTransport(lambda r: _ok([], r)))
    body = ClaimBody.model_construct(workers=Workers(min=1, max=1), env={"A": "\udcff"})
    with pytest.raises(BadRequest, match="env cannot be sent"):
        await http.send("POST", "/claims", body=body)
    await http.close()


def _ok(seen: list[httpx.Request], request: httpx.Request) -> httpx.Response:
    seen.append(request)
    return httpx.Response(200, content=b"{}")


async def test_certificate_of_a_stranger_names_the_authority_to_set(tmp_path: Path) -> None:
    """At once, and in one sentence: trying again would not help."""
    scheduler = make_secrets(datetime.now(UTC), timedelta(hours=1)).scheduler
    pem = tmp_path / "pem"
    pem.write_text(scheduler.key + scheduler.certificate)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(pem)
    async with await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", ssl=served) as here:
        port = here.sockets[0].getsockname()[1]
        http = Http(PoolAddress(url=f"https://127.0.0.1:{port}", token="t"))
        with pytest.raises(Unavailable, match=r"cannot be verified.*GPUPOOL_CA"):
            await http.send("GET", "/status", patience_s=30)
        await http.close()
