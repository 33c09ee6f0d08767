"""The scheduler's HTTP server: TLS and a secret prefix, and nothing without them."""

import asyncio
import contextlib
import ssl

import httpx
import pytest

from jupyter_gpupool.protocol.launch import Role

pytestmark = pytest.mark.asyncio(loop_scope="module")

_KNOWN = (
    "/",
    "/status",
    "/sitemap.json",
    "/metrics",
    "/health",
    "/info/main/workers.html",
    "/json/identity.json",
    "/json/counts.json",
    "/api/v1",
    "/statics/css/base.css",
    "/static/js/bokeh.min.js",
    "/individual-plots.json",
    "/eventstream",
    "/proxy/1/127.0.0.1/",
    "/secret-of-this-claim-but-longer/metrics",
    "//secret-of-this-claim",
    "/x/../metrics",
)


async def _answers(claim, state, *paths):
    context = ssl.create_default_context(cadata=claim.secrets.ca)
    # The certificate names a role and no address; who has signed it is what counts.
    context.check_hostname = False
    url = f"https://127.0.0.1:{state.dashboard_port}"
    async with httpx.AsyncClient(verify=context, base_url=url) as browser:
        return [await browser.get(path) for path in paths]


async def test_every_route_without_prefix_is_unknown(host, claim):
    """Nothing of distributed's HTTP server answers to whoever does not know the prefix."""
    state = await host.up(claim)
    answers = await _answers(claim, state, *_KNOWN)
    assert {path: answer.status_code for path, answer in zip(_KNOWN, answers, strict=True)} == (
        dict.fromkeys(_KNOWN, 404)
    )


async def test_no_answer_tells_the_prefix(host, claim):
    """No body and no header of a refusal holds the secret."""
    state = await host.up(claim)
    answers = await _answers(claim, state, "/", "/sitemap.json", "/status")
    assert not any(host.prefix in answer.text + str(answer.headers) for answer in answers)


async def test_pages_are_there_behind_the_prefix(host, claim):
    """The owner's way in shows Dask's own pages, workers' among them."""
    state = await host.up(claim, "lease-a")
    pages = ("status", "metrics", "info/main/workers.html", "json/identity.json", "gpu")
    answers = await _answers(claim, state, *(f"/{host.prefix}/{page}" for page in pages))
    assert [answer.status_code for answer in answers] == [200] * len(pages)


async def test_prefix_alone_leads_to_the_status_page(host, claim):
    """With or without a slash at its end."""
    state = await host.up(claim)
    answers = await _answers(claim, state, f"/{host.prefix}", f"/{host.prefix}/")
    assert [a.headers["location"] for a in answers] == [f"/{host.prefix}/status"] * 2


async def test_plain_http_gets_nothing(host, claim):
    """The dashboard's port speaks TLS only."""
    state = await host.up(claim)
    reader, writer = await asyncio.open_connection("127.0.0.1", state.dashboard_port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        answer = await reader.read()
    writer.close()
    assert b"HTTP" not in answer


async def test_log_never_holds_the_prefix(host, claim):
    """Requests that fail behind the prefix are not written down with their path."""
    state = await host.up(claim)
    await _answers(claim, state, f"/{host.prefix}/no-such-page", f"/{host.prefix}/status")
    launch = host.launch(claim, Role.SCHEDULER, "")
    assert host.prefix not in host.log_of(launch).read_text()


async def test_no_prefix_means_no_http_server(host, claim):
    """Without a secret there is nothing to hide behind, so nothing listens."""
    await host.fork(host.launch(claim, Role.SCHEDULER, "", prefix=""))
    state = await host.until(lambda: host.state_of(claim))
    assert state.dashboard_port is None
