"""Every error leaves as a problem, and none says more than it should."""

import json
import sqlite3

import pytest
from sqlalchemy.exc import DataError, OperationalError

from jupyter_gpupool.manager.service.links import Link
from jupyter_gpupool.manager.store import writing
from jupyter_gpupool.pool.errors import Unavailable


@pytest.mark.parametrize(
    ("method", "path", "status", "reference"),
    [
        ("GET", "/nowhere", 404, "not-found"),
        ("PUT", "/api/v1/claims", 405, "bad-request"),
        ("GET", "/api/v1/claims?limit=0", 422, "bad-request"),
        ("GET", "/api/v1/claims/c-none", 404, "not-found"),
    ],
)
async def test_frameworks_own_errors_are_problems(site, method, path, status, reference):
    """Nobody meets two forms of error."""
    async with await site.client() as client:
        answer = await client.request(method, path)
    told = answer.json()
    assert (answer.status_code, told["status"]) == (status, status)
    assert told["type"] == f"urn:gpupool:problem:{reference}"
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("announced", [True, False])
async def test_large_body_is_refused(site, announced):
    """Beyond 1 MiB, announced or dribbled."""

    async def dribble():
        for _ in range(40):
            yield b"x" * 2**15

    content = b"x" * (2**20 + 1) if announced else dribble()
    async with await site.client() as client:
        answer = await client.post("/api/v1/claims", content=content)
    assert answer.status_code == 413


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[1]", b"1" * 5000, b'{"workers": NaN}'])
async def test_body_that_is_no_claim_is_refused(site, content):
    """Whatever it is, it is a client's error."""
    headers = {"Content-Type": "application/json"}
    async with await site.client() as client:
        answer = await client.post("/api/v1/claims", content=content, headers=headers)
    assert answer.status_code in (400, 422), answer.text


async def test_defect_is_told_in_one_sentence(site, monkeypatch):
    """No internals reach a client; the log has them."""
    async with await site.client() as client:
        with monkeypatch.context() as broken:
            broken.setattr(site.parts.service.books, "hosts", None)
            answer = await client.get("/api/v1/hosts")
    assert answer.status_code == 500
    assert "NoneType" not in answer.text
    assert answer.json()["detail"] == "The manager failed on this request."


async def test_full_disk_is_unavailable_and_heals(site, monkeypatch):
    """503 with the reason while it lasts, and health says so too."""
    store, body = site.parts.service.store, {"workers": {"min": 1, "max": 1}}

    async def fail(*_):
        raise Unavailable("The database cannot be written: the disk is full.")

    async with await site.client() as client:
        with monkeypatch.context() as broken:
            broken.setattr(store, "commit", fail)
            broken.setattr(store, "prove_writable", fail)
            refused = await client.post("/api/v1/claims", json=body)
            unwell = await client.get("/health")
        well = await client.get("/health")
        made = await client.post("/api/v1/claims", json=body)
    assert [x.status_code for x in (refused, unwell, well, made)] == [503, 503, 200, 201]
    assert "the disk is full" in refused.json()["detail"]


async def test_release_on_a_full_disk_says_how_to_go_on(site, monkeypatch):
    """It cannot be kept, so it is not done; with room it simply works."""

    def fail(*_):
        raise OperationalError("", {}, sqlite3.OperationalError("database or disk is full"))

    async with await site.client() as client:
        claim = (await client.post("/api/v1/claims", json=_ONE)).json()["id"]
        path = f"/api/v1/claims/{claim}/release"
        with monkeypatch.context() as full:
            full.setattr(writing, "write", fail)
            refused = await client.post(path, json={})
        released = await client.post(path, json={})
    assert [refused.status_code, released.status_code] == [503, 200]
    assert "the disk is full" in refused.json()["detail"]
    assert "Delete files on it by hand" in refused.json()["hint"]


async def test_value_that_no_database_holds_is_a_bad_request(site, monkeypatch):
    """Nobody else fails with it, the disk is well, and the value is not repeated."""

    def fail(*_):
        raise DataError("s3cret", {"x": "s3cret"}, ValueError("a NUL"))

    async with await site.client() as client:
        with monkeypatch.context() as poison:
            poison.setattr(writing, "write", fail)
            refused = await client.post("/api/v1/claims", json=_ONE)
    assert (refused.status_code, site.parts.service.writable) == (422, True)
    assert "s3cret" not in refused.text


async def test_odd_idempotency_key_is_refused(site):
    """Empty or endless."""
    async with await site.client() as client:
        for key in ("", "x" * 201):
            answer = await client.post("/api/v1/tokens", json={}, headers={"Idempotency-Key": key})
            assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "x" * 201),
        ("model", "a100\x1b[2J"),
        ("queue", "x" * 201),
        ("near", "a\nb"),
        ("environment", "x" * 201),
        ("device_memory_limit", "1" * 41),
        ("pre_import", ["cupy"] * 101),
        ("env", {"A": "x" * 65_536}),
        ("env", {f"A{n}": "" for n in range(1001)}),
    ],
)
async def test_terms_are_short_and_printable(site, field, value):
    """They are kept in memory, and end on an admin's terminal."""
    body = {"workers": {"min": 1, "max": 1}, field: value}
    async with await site.client() as client:
        answer = await client.post("/api/v1/claims", json=body)
    assert (answer.status_code, answer.json()["field"].split(".")[0]) == (422, field)


_JSON = {"Content-Type": "application/json"}
_ONE = {"workers": {"min": 1, "max": 1}}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("claims", _ONE | {"env": {"A": "\ud800"}}, "env"),
        ("claims", _ONE | {"env": {"\ud800": ""}}, "env"),
        ("claims", _ONE | {"name": "\ud800"}, "name"),
        ("claims", _ONE | {"gpu_memory": "\ud800"}, "gpu_memory"),
        ("claims", _ONE | {"pre_import": ["\ud800"]}, "pre_import"),
        ("claims", _ONE | {"priority": "\ud800"}, "priority"),
        ("tokens", {"label": "\ud800"}, "label"),
        ("tokens", {"user": "a\0b"}, "user"),
        ("tokens", {"os_user": "\ud800"}, "os_user"),
        ("claims/c-1/release", {"reason": "\ud800"}, "reason"),
    ],
)
async def test_text_that_cannot_be_stored_is_refused(site, path, body, field):
    """In every field alike, before anything is asked of the service."""
    async with await site.client() as client:
        answer = await client.post(f"/api/v1/{path}", content=json.dumps(body), headers=_JSON)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_unknown_term_that_is_no_text_is_refused(site):
    """Nothing of it stands in the way of an answer."""
    content = json.dumps(_ONE | {"\ud800": 1})
    async with await site.client() as client:
        answer = await client.post("/api/v1/claims", content=content, headers=_JSON)
    assert (answer.status_code, answer.json()["field"]) == (422, "")


async def test_truncated_body_is_told_in_a_sentence(site):
    """A place within it is no field."""
    async with await site.client() as client:
        answer = await client.post("/api/v1/claims", content=b'{"workers":', headers=_JSON)
    assert answer.json()["detail"] == "The body: JSON decode error."


@pytest.mark.parametrize("number", [True, "1", 1.0])
async def test_number_of_workers_is_a_whole_number(site, number):
    """`true` is not one worker."""
    async with await site.client() as client:
        answer = await client.post("/api/v1/claims", json={"workers": {"min": number, "max": 1}})
    assert (answer.status_code, answer.json()["field"]) == (422, "workers.min")


async def test_refused_term_sends_nobody_to_the_schema(site):
    """Whoever calls it from a notebook has never heard of it; a path that is none is its matter."""
    async with await site.client() as client:
        refused = await client.post("/api/v1/claims", json={"workers": {"min": -1, "max": 1}})
        nowhere = await client.get("/api/v1/nowhere")
    assert refused.json()["hint"] == ""
    assert "openapi.json" in nowhere.json()["hint"]


async def test_reason_of_a_release_drives_no_terminal(site):
    """Admins read it."""
    async with await site.client() as client:
        claim = (
            await client.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
        ).json()["id"]
        answer = await client.post(f"/api/v1/claims/{claim}/release", json={"reason": "\x1b[2J"})
    assert (answer.status_code, answer.json()["field"]) == (422, "reason")


async def test_unprintable_id_is_simply_not_found(site):
    """Not every database takes a NUL."""
    async with await site.client() as client:
        assert (await client.get("/api/v1/claims/a%00b")).status_code == 404


async def test_hosts_say_when_two_agents_share_an_id(site):
    """Each drives the other out: somebody has copied a state folder."""
    agent = await site.host()
    links, now_s = site.parts.service.links, site.parts.service.clock.monotonic()
    for _ in range(3):
        links.open(Link(host_id=agent.host_id, peer=("a", "10.0.0.1")), now_s)
    async with await site.client() as client:
        [host] = (await client.get("/api/v1/hosts")).json()
    assert "was its state folder copied?" in host["problem"]
