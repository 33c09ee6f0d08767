"""Estimates over HTTP: when a claim would start that nobody has made."""

from datetime import timedelta

import pytest

_URL = "/api/v1/estimates"


def terms(workers: int = 1, **more) -> dict:
    return {"workers": {"min": workers, "max": workers}} | more


async def held(site, agent, client, workers: int = 1, **more) -> None:
    """A claim that runs."""
    await client.post("/api/v1/claims", json=terms(workers, **more))
    await site.come_up(agent)


async def test_claim_that_would_start_at_once_says_so(site):
    """And nothing is claimed by asking."""
    await site.host(devices=2)
    async with await site.client() as client:
        told = (await client.post(_URL, json=terms(2))).json()
        claims = (await client.get("/api/v1/claims")).json()
    assert (told["now"], told["place"], told["reason"], claims) == (True, None, "", [])


async def test_claim_that_would_wait_says_when_why_and_what_instead(site):
    """Two of three devices are held for twenty minutes: one would do now."""
    agent = await site.host(devices=3)
    async with await site.client() as client:
        await held(site, agent, client, 2, expected_s=1200)
        told = (await client.post(_URL, json=terms(3))).json()
    assert (told["now"], told["place"], told["constraint"]) == (False, 1, "devices")
    assert told["reason"].startswith("Waiting for 2 of 3 devices")
    assert told["alternatives"] == [{"workers": 1, "model": ""}]
    assert told["starts_at"] < told["starts_by"]


async def test_start_nobody_can_tell_is_left_out(site):
    """The holder says nothing, and nothing was learned."""
    agent = await site.host(devices=1)
    async with await site.client() as client:
        await held(site, agent, client)
        told = (await client.post(_URL, json=terms())).json()
    assert (told["starts_at"], told["never"], told["place"]) == (None, False, 1)


async def test_impossible_claim_is_told_the_largest_gang(site):
    """Without a place in line, and without a time."""
    await site.host("a", devices=2)
    await site.host("b", devices=2)
    async with await site.client() as client:
        told = (await client.post(_URL, json=terms(9))).json()
    assert (told["never"], told["place"], told["starts_at"]) == (True, None, None)
    assert "9 devices wanted, 4 joined on 2 hosts" in told["reason"]


async def test_deadline_that_cannot_be_met_is_told(site):
    """The start alone comes later than that."""
    agent = await site.host(devices=1)
    soon = (site.parts.service.clock.now() + timedelta(minutes=1)).isoformat()
    async with await site.client() as client:
        await held(site, agent, client, expected_s=3600)
        told = (await client.post(_URL, json=terms(deadline=soon))).json()
    assert told["misses_deadline"] is True


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (terms(0), 422, "workers"),
        ({"workers": {"min": 2, "max": 1}}, 422, "workers"),
        (terms(queue="nowhere"), 422, "queue"),
        (terms(priority="urgent"), 422, "priority"),
        (terms(gpus=3), 422, "gpus"),
        (terms(expected_s=-1), 422, "expected_s"),
        (terms(deadline="2020-01-01T00:00:00Z"), 422, "deadline"),
    ],
)
async def test_nonsense_is_refused_as_for_a_claim(site, body, status, field):
    """By the name of its field."""
    async with await site.client() as client:
        answer = await client.post(_URL, json=body)
    assert (answer.status_code, answer.json()["field"]) == (status, field)


async def test_same_key_gets_the_same_answer(site):
    """Though the pool has changed since; with another body it is refused."""
    key = {"Idempotency-Key": "once"}
    async with await site.client() as client:
        first = await client.post(_URL, json=terms(), headers=key)
        await site.host()
        again = await client.post(_URL, json=terms(), headers=key)
        other = await client.post(_URL, json=terms(2), headers=key)
    assert (first.json(), other.status_code) == (again.json(), 422)


async def test_claims_that_wait_are_seen_in_one_look_at_the_pool(site):
    """The caller's own alone, with place and start, as in the claim itself."""
    agent = await site.host(devices=1)
    async with await site.client() as client:
        await held(site, agent, client, expected_s=1200)
        made = (await client.post("/api/v1/claims", json=terms(name="next"))).json()
        [coming] = (await client.get("/api/v1/status")).json()["coming"]
        wait = (await client.get(f"/api/v1/claims/{made['id']}")).json()["wait"]
        told = (await client.get(f"/api/v1/claims/{made['id']}/explanation")).json()
    async with await site.client("bob") as other:
        assert (await other.get("/api/v1/status")).json()["coming"] == []
    assert (coming["name"], coming["place"]) == ("next", 1)
    assert coming["starts_at"] == wait["starts_at"] == told["starts_at"] is not None
    assert "It is thought to start in 20 min" in told["lines"][1]
