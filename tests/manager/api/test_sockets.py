"""The event stream and the agents' link, on a real server."""

import asyncio
import json
from contextlib import asynccontextmanager
from functools import partial

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from jupyter_gpupool.manager.http_server import HttpServer
from jupyter_gpupool.manager.service import hub, process_logs
from jupyter_gpupool.manager.service.tokens import RevokeToken, revoke_token
from jupyter_gpupool.protocol.api import Role
from jupyter_gpupool.protocol.link import Desired, Joined, LogAnswer, LookNow, Refused, ToAgent
from jupyter_gpupool.protocol.using import ProcessLog

_WITHIN_S = 10


@pytest.fixture
async def served(site):
    """The site behind a real socket; `url` is its address."""
    server = HttpServer.bind("127.0.0.1", 0, None)
    await server.start(site.app)
    site.url = server.url
    yield site
    site.parts.is_ending = True
    site.parts.service.links.close_all()
    await site.parts.sessions.close_all()
    await server.stop()


async def test_stream_tells_what_happens(served):
    """Live, in order, and only what the reader may see."""
    async with _stream(served, "ann") as ann, _client(served, "bob") as bob:
        await bob.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
        await served.host()
        told = json.loads(await _hear(ann))
    assert told["kind"] == "host.joined"


async def test_stream_resumes_where_it_was_left(served):
    """Nothing twice, nothing missed."""
    async with _client(served, "ann") as ann:
        await _make_and_release(ann, 3)
        async with _stream(served, "ann", "?after=2") as stream:
            missed = [json.loads(await _hear(stream))["seq"] for _ in range(7)]
            await _make_and_release(ann, 1)
            assert json.loads(await _hear(stream))["seq"] == 10
    assert missed == [3, 4, 5, 6, 7, 8, 9]


async def test_stream_resumes_beyond_memory(served, monkeypatch):
    """What memory has forgotten comes from the database."""
    served.parts.service.hub._last = hub.deque(maxlen=2)
    async with _client(served, "ann") as ann:
        await _make_and_release(ann, 4)
    async with _stream(served, "ann", "?after=1") as stream:
        seqs = [json.loads(await _hear(stream))["seq"] for _ in range(11)]
    assert seqs == list(range(2, 13))


async def test_stream_from_the_future_is_a_gap(served):
    """A reader that knows more than the database has to load the state anew."""
    async with _stream(served, "ann", "?after=1000") as stream:
        assert json.loads(await _hear(stream)) == {"gap": True, "oldest": 0}


async def test_stream_of_one_claim_holds_nothing_else(served):
    """The filter is the reader's wish."""
    async with _client(served, "ann") as ann:
        first = await _make_and_release(ann, 1)
        await _make_and_release(ann, 1)
        async with _stream(served, "ann", f"?after=0&claim={first}") as stream:
            told = [json.loads(await _hear(stream))["claim_id"] for _ in range(3)]
    assert told == [first] * 3


async def test_slow_reader_is_dropped_and_may_resume(served, monkeypatch):
    """It costs bounded memory, and is told to come back."""
    monkeypatch.setattr(hub, "_MOST_WAITING", 3)
    async with _stream(served, "ann") as stream, _client(served, "ann") as ann:
        await _hear_one_of(stream, ann)
        listener = next(iter(served.parts.service.hub.listeners))
        for event in list(served.parts.service.hub._last) * 5:
            listener.tell(event)
        assert await _closing(stream) == 4408


async def test_revoked_token_closes_its_stream(served):
    """At once, not at the next request."""
    async with _client(served, "ann") as ann:
        token = ann.headers["authorization"]
        mine = (await ann.get("/api/v1/tokens")).json()[0]["id"]
        async with _stream(served, token=token) as stream:
            await ann.delete(f"/api/v1/tokens/{mine}")
            assert await _closing(stream) == 4401


async def test_expired_token_closes_its_stream(served):
    """When its time is up."""
    async with _client(served, "ann") as ann:
        made = (await ann.post("/api/v1/tokens", json={"expires_in_s": 1})).json()
    async with _stream(served, token=f"Bearer {made['secret']}") as stream:
        assert await _closing(stream) == 4401


@pytest.mark.parametrize(
    ("path", "role", "status"),
    [
        ("/api/v1/events/stream", None, 401),
        ("/api/v1/events/stream", Role.AGENT, 403),
        ("/api/v1/agents/link", None, 401),
        ("/api/v1/agents/link", Role.USER, 403),
        ("/api/v1/agents/link", Role.ADMIN, 403),
        ("/api/v1/events/stream?after=-1", Role.USER, 422),
    ],
)
async def test_socket_refuses_before_it_opens(served, path, role, status):
    """With a status and a problem, like any other route."""
    secret = await served.token("x", role) if role else "gpt_none"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(_ws(served) + path, additional_headers=_bearer(secret)):
            pass
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["status"] == status


async def test_agent_joins_and_hears_what_to_run(served):
    """Report, `Joined`, `Desired`; and a new `Desired` after a claim."""
    agent = served.agent("a", 1)
    async with _link(served) as link, _client(served, "ann") as ann:
        await link.send(agent.report().model_dump_json())
        joined, empty = _read(await _hear(link)), _read(await _hear(link))
        await ann.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
        wanted = _read(await _hear(link))
    assert isinstance(joined, Joined)
    assert isinstance(empty, Desired)
    assert len(wanted.claims[0].workers) == 1
    assert wanted.generation > empty.generation


async def test_busy_agent_hears_one_large_message_and_then_the_newest(served):
    """A row of them to read would keep it from answering pings, and its host would be lost."""
    agent, claims = served.agent("a", 60), 50
    async with _link(served) as link, _client(served, "ann") as ann:
        await link.send(agent.report().model_dump_json())
        for _ in range(claims):
            await ann.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
        while len(text := await _hear(link)) < 64 * 1024:
            pass
        served.parts.service.links.look(agent.host_id)
        assert isinstance(_read(await _hear(link)), LookNow)
        agent.make_so(_read(text))
        await link.send(agent.report().model_dump_json())
        newest = _read(await _hear(link))
    assert len(_read(text).claims) < claims == len(newest.claims)


async def test_agent_is_asked_to_report(served):
    """When something is due that depends on what its claims do."""
    agent = served.agent("a", 1)
    async with _link(served) as link:
        await link.send(agent.report().model_dump_json())
        for _ in range(2):
            await _hear(link)
        served.parts.service.links.look(agent.host_id)
        assert isinstance(_read(await _hear(link)), LookNow)


async def test_agent_is_asked_for_a_claims_logs(served):
    """Over the same link; its answer goes to whoever asked."""
    agent = served.agent("a", 1)
    async with _link(served) as link, _client(served, "ann") as ann:
        await link.send(agent.report().model_dump_json())
        await _hear(link)
        await _hear(link)
        made = (await ann.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})).json()
        await _hear(link)
        asking = asyncio.create_task(ann.get(f"/api/v1/claims/{made['id']}/logs?lines=7"))
        query = _read(await _hear(link))
        logs = [ProcessLog(process=process, host="x", lines=("hi",)) for process in query.processes]
        await link.send(LogAnswer(id=query.id, logs=logs).model_dump_json())
        told = (await asking).json()["processes"]
    assert (query.claim_id, query.lines) == (made["id"], 7)
    assert query.processes == ("scheduler", made["leases"][0]["id"])
    assert [(log["process"], log["host"], log["lines"]) for log in told] == [
        (process, "a", ["hi"]) for process in query.processes
    ]


async def test_link_that_goes_answers_nothing_more(served):
    """Whoever asked hears so at once, not when the time is over."""
    agent = served.agent("a", 1)
    async with _client(served, "ann") as ann:
        async with _link(served) as link:
            await link.send(agent.report().model_dump_json())
            await _hear(link)
            await _hear(link)
            made = await ann.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
            await _hear(link)
            asking = asyncio.create_task(ann.get(f"/api/v1/claims/{made.json()['id']}/logs"))
            await _hear(link)
        async with asyncio.timeout(process_logs.ANSWER_WITHIN_S / 2):
            told = (await asking).json()["processes"]
    assert [log["problem"] for log in told] == ["No answer came from a."] * 2


async def test_answer_before_the_first_report_is_none(served):
    """An agent says who it is before anything else."""
    async with _link(served) as link:
        await link.send(LogAnswer(id=1).model_dump_json())
        assert await _closing(link) == 1007


async def test_answer_nobody_waits_for_is_dropped(served):
    """It comes late, or was never asked for; the link goes on."""
    agent = served.agent("a", 1)
    async with _link(served) as link:
        await link.send(agent.report().model_dump_json())
        await _hear(link)
        await _hear(link)
        await link.send(LogAnswer(id=99).model_dump_json())
        other = await served.host("b")
        await link.send(other.report().model_dump_json())
        assert isinstance(_read(await _hear(link)), Refused)


async def test_other_link_version_is_refused(served):
    """With a reason and what to do."""
    agent = served.agent("a", 1)
    async with _link(served) as link:
        report = agent.report().model_copy(update={"link_version": 99})
        await link.send(report.model_dump_json())
        refused = _read(await _hear(link))
    assert isinstance(refused, Refused)
    assert "link version 99" in refused.reason


async def test_newer_agent_takes_over_its_hosts_link(served):
    """The old connection is closed; the host stays connected."""
    agent = served.agent("a", 1)
    token = await served.token("agent", Role.AGENT)
    async with _link(served, token) as old, _link(served, token) as new:
        for link in (old, new):
            await link.send(agent.report().model_dump_json())
            await _hear(link)
        assert await _closing(old) == 4409
    assert agent.host_id in served.parts.service.books.hosts


async def test_other_token_does_not_take_a_host_over(served):
    """It would receive that host's keys; the true agent's link stays open."""
    agent = served.agent("a", 1)
    async with _link(served) as true, _link(served) as false:
        await true.send(agent.report().model_dump_json())
        joined = _read(await _hear(true))
        await false.send(agent.report().model_dump_json())
        refused = _read(await _hear(false))
    assert (type(joined), type(refused)) == (Joined, Refused)
    assert "joined with another token" in refused.reason


async def test_token_that_is_void_frees_its_host(served):
    """That is how an admin gives a host another token."""
    agent, old = served.agent("a", 1), await served.token("agent", Role.AGENT)
    async with _link(served, old) as link:
        await link.send(agent.report().model_dump_json())
        await _hear(link)
        async with await served.client("root", Role.ADMIN) as admin:
            tokens = (await admin.get("/api/v1/tokens")).json()
            [token] = [t["id"] for t in tokens if t["role"] == "agent"]
            await admin.delete(f"/api/v1/tokens/{token}")
        assert await _closing(link) == 4401
    async with _link(served) as link:
        await link.send(agent.report().model_dump_json())
        assert isinstance(_read(await _hear(link)), Joined)


async def test_report_for_another_host_ends_the_link(served):
    """Its word would free the other's devices under running workers."""
    agent, other = served.agent("a", 1), await served.host("b")
    async with _link(served) as link:
        await link.send(agent.report().model_dump_json())
        await _hear(link)
        await _hear(link)
        await link.send(other.report().model_dump_json())
        refused = _read(await _hear(link))
    assert "The agent of host a reports for host b" in refused.reason


async def test_copied_state_folder_is_told_and_drives_nobody_out(served):
    """Another machine under the same id is refused while the first one is there."""
    agent, token = served.agent("a", 1), await served.token("agent", Role.AGENT)
    copy = agent.report().model_copy(update={"name": "clone", "address": "10.0.0.2"})
    async with _link(served, token) as first, _link(served, token) as second:
        await first.send(agent.report().model_dump_json())
        await _hear(first)
        await second.send(copy.model_dump_json())
        refused = _read(await _hear(second))
    assert "connected already, as a at 10.0.0.1" in refused.reason


async def test_token_revoked_before_the_first_report_opens_no_link(served):
    """The check at the request is not the last one."""
    agent, token = served.agent("a", 1), await served.token("agent", Role.AGENT)
    async with _link(served, token) as link:
        [record] = served.parts.service.books.tokens.values()
        revoke = RevokeToken(caller=served.admin(), token_id=record.id)
        await served.parts.service.execute(partial(revoke_token, command=revoke))
        await link.send(agent.report().model_dump_json())
        assert await _closing(link) == 4401


async def test_broken_link_makes_the_host_silent(served):
    """People are told at once."""
    agent = served.agent("a", 1)
    async with _stream(served, "ann") as stream:
        async with _link(served) as link:
            await link.send(agent.report().model_dump_json())
            assert json.loads(await _hear(stream))["kind"] == "host.joined"
        assert json.loads(await _hear(stream))["kind"] == "host.silent"


async def test_nonsense_on_the_link_closes_it(served):
    """And nothing else happens."""
    async with _link(served) as link:
        await link.send("{}")
        assert await _closing(link) == 1007


async def test_bytes_on_the_link_close_it(served, caplog):
    """Like any other nonsense: a code, and one line in the log."""
    async with _link(served) as link:
        await link.send(b"\x00")
        assert await _closing(link) == 1007
    assert "link is closed: A message holds bytes" in caplog.text


async def _make_and_release(client, times: int) -> str:
    for _ in range(times):
        made = await client.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
        claim = made.json()["id"]
        await client.post(f"/api/v1/claims/{claim}/release", json={})
    return claim


async def _hear_one_of(stream, client) -> None:
    await client.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
    await _hear(stream)


async def _hear(socket) -> str:
    async with asyncio.timeout(_WITHIN_S):
        return await socket.recv()


async def _closing(socket) -> int:
    async with asyncio.timeout(_WITHIN_S):
        try:
            while True:
                await socket.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code


@asynccontextmanager
async def _stream(served, user: str = "", query: str = "", token: str = ""):
    header = {"Authorization": token} if token else _bearer(await served.token(user))
    listening = len(served.parts.service.hub.listeners) + 1
    url = f"{_ws(served)}/api/v1/events/stream{query}"
    async with connect(url, additional_headers=header) as socket, asyncio.timeout(_WITHIN_S):
        while len(served.parts.service.hub.listeners) < listening:  # noqa: ASYNC110 - the server's
            await asyncio.sleep(0)
        yield socket


@asynccontextmanager
async def _link(served, token: str = ""):
    header = _bearer(token or await served.token("agent", Role.AGENT))
    async with connect(f"{_ws(served)}/api/v1/agents/link", additional_headers=header) as socket:
        yield socket


@asynccontextmanager
async def _client(served, user: str):
    header = _bearer(await served.token(user))
    async with httpx.AsyncClient(base_url=served.url, headers=header) as client:
        yield client


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def _ws(served) -> str:
    return served.url.replace("http", "ws", 1)


def _read(text: str):
    return ToAgent.validate_json(text)
