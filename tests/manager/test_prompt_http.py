"""Connections without a request: closed in time, and no others with them."""

import asyncio

import pytest

from jupyter_gpupool.manager import prompt_http
from jupyter_gpupool.manager.http_server import HttpServer

_WITHIN_S = 10
_SHORT_S = 0.2
_ASK = b"GET /health HTTP/1.1\r\nHost: pool\r\n\r\n"


@pytest.fixture
async def port(site, monkeypatch):
    """The site's port, where a request has to arrive at once."""
    monkeypatch.setattr(prompt_http, "ARRIVE_WITHIN_S", _SHORT_S)
    server = HttpServer.bind("127.0.0.1", 0, None)
    await server.start(site.app)
    yield server.port
    await server.stop()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /hea",
        b"POST /api/v1/claims HTTP/1.1\r\nHost: pool\r\nContent-Length: 9\r\n\r\n{",
        _ASK + b"GET /hea",
    ],
    ids=["nothing", "half a header", "half a body", "half a second request"],
)
async def test_request_that_does_not_arrive_ends_its_connection(port, sent):
    """No token is needed to connect, so nobody may stay for nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(_WITHIN_S):
        await reader.read()
    writer.close()
    await writer.wait_closed()
    assert reader.at_eof()


async def test_connection_between_requests_stays(port):
    """Clients keep theirs for the next request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(_ASK)
        async with asyncio.timeout(_WITHIN_S):
            assert (await reader.readline()).split()[1] == b"200"
            await reader.readuntil(b"}")
        await asyncio.sleep(2 * _SHORT_S)  # nothing is waited for: that nothing happens is the test
    writer.close()
    await writer.wait_closed()
