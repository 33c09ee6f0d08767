"""Claims over HTTP, on a real database."""

import asyncio

import pytest

_TWO = {"workers": {"min": 1, "max": 2}}


async def test_claim_is_answered_with_its_life_so_far(site):
    """One answer says phase, reason, leases and where to resume the stream."""
    await site.host()
    async with await site.client() as client:
        answer = await client.post("/api/v1/claims", json=_TWO | {"name": "mine"})
    view = answer.json()
    assert (answer.status_code, view["phase"], len(view["leases"])) == (201, "starting", 2)
    assert (view["name"], view["owner"], view["scheduler_host"]) == ("mine", "ann", "a")


async def test_waiting_claim_shows_place_and_reason(site):
    """What a user wants to know while waiting."""
    async with await site.client() as client:
        made = (await client.post("/api/v1/claims", json=_TWO)).json()
        second = (await client.post("/api/v1/claims", json=_TWO)).json()
        seen = (await client.get(f"/api/v1/claims/{second['id']}")).json()
    assert made["wait"]["never"] is True
    assert "1 device wanted" in seen["wait"]["reason"]


async def test_owner_gets_the_connection_while_it_lives(site):
    """Not before it is granted, and not once it is over."""
    async with await site.client() as client:
        claim = (await client.post("/api/v1/claims", json=_TWO)).json()["id"]
        path = f"/api/v1/claims/{claim}/connection"
        before = await client.get(path)
        agent = await site.host()
        await site.come_up(agent)
        during = (await client.get(path)).json()
        await client.post(f"/api/v1/claims/{claim}/release", json={})
        after = await client.get(path)
    assert (before.status_code, after.status_code) == (409, 409)
    assert during["scheduler_address"] == "tls://10.0.0.1:1"
    assert during["dashboard_url"].startswith("https://10.0.0.1:8787/")
    assert "PRIVATE KEY" in during["key"]


async def test_repeated_request_gets_the_same_claim(site):
    """Ten times the same key, at once and later: one claim."""
    key = {"Idempotency-Key": "a key"}
    async with await site.client() as client:
        asks = [client.post("/api/v1/claims", json=_TWO, headers=key) for _ in range(10)]
        ids = {answer.json()["id"] for answer in await asyncio.gather(*asks)}
        ids.add((await client.post("/api/v1/claims", json=_TWO, headers=key)).json()["id"])
        other = await client.post(
            "/api/v1/claims", json={"workers": {"min": 1, "max": 1}}, headers=key
        )
        listed = (await client.get("/api/v1/claims")).json()
    assert (len(ids), len(listed), other.status_code) == (1, 1, 422)


async def test_key_belongs_to_its_user(site):
    """Another's same key is another key."""
    key = {"Idempotency-Key": "a key"}
    async with await site.client("ann") as ann, await site.client("bob") as bob:
        first = (await ann.post("/api/v1/claims", json=_TWO, headers=key)).json()["id"]
        second = (await bob.post("/api/v1/claims", json=_TWO, headers=key)).json()["id"]
    assert first != second


async def test_ended_claims_are_listed_on_demand(site):
    """From the database, newest first."""
    async with await site.client() as client:
        claim = (await client.post("/api/v1/claims", json=_TWO)).json()["id"]
        await client.post(f"/api/v1/claims/{claim}/release", json={"reason": "done"})
        live = (await client.get("/api/v1/claims")).json()
        ended = (await client.get("/api/v1/claims?ended=true")).json()
    assert (live, [view["reason"] for view in ended]) == ([], ["Cancelled: done"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "workers"),
        ({"workers": {"min": 2, "max": 1}}, "workers"),
        ({"workers": {"min": 0, "max": 0}}, "workers"),
        (_TWO | {"gpus": 2}, "gpus"),
        (_TWO | {"gpu_memory": "lots"}, "gpu_memory"),
        (_TWO | {"gpus_per_worker": 1.5}, "gpus_per_worker"),
        (_TWO | {"gpus_per_worker": 0.5, "gpu_memory": "1GiB"}, "gpu_memory"),
        (_TWO | {"cpus": 0}, "cpus"),
        (_TWO | {"on_idle": "release"}, "on_idle"),
        (_TWO | {"on_idle": "explode"}, "on_idle"),
        (_TWO | {"time_limit_s": -1}, "time_limit_s"),
        (_TWO | {"deadline": "2026-01-01T00:00:00"}, "deadline"),
        (_TWO | {"env": {"1A": "x"}}, "env"),
        (_TWO | {"name": "a/b"}, "name"),
        (_TWO | {"protocol": "tcp"}, "protocol"),
    ],
)
async def test_nonsense_is_refused_by_the_name_of_its_field(site, body, field):
    """A problem says which term is wrong, and nothing is kept."""
    async with await site.client() as client:
        answer = await client.post("/api/v1/claims", json=body)
    told = answer.json()
    assert (answer.status_code, told["field"]) == (422, field)
    assert told["type"] == "urn:gpupool:problem:bad-request"
    assert not site.parts.service.books.claims
