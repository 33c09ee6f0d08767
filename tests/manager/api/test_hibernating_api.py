"""Hibernation over HTTP, on a real database."""

from jupyter_gpupool.protocol.keeping import Unkept, UnkeptReason

_BODY = {"workers": {"min": 1, "max": 1}}


async def _running(site, client):
    agent = await site.host()
    claim_id = (await client.post("/api/v1/claims", json=_BODY)).json()["id"]
    await site.come_up(agent)
    return agent, claim_id, f"/api/v1/claims/{claim_id}"


async def test_claim_hibernates_and_resumes(site):
    """Each answer is the claim as it is then, with what is kept."""
    async with await site.client() as client:
        agent, claim_id, path = await _running(site, client)
        agent.results[claim_id] = 3
        asked = (await client.post(f"{path}/hibernate", json={"reason": "for lunch"})).json()
        await site.come_up(agent)
        kept = (await client.get(path)).json()
        resumed = (await client.post(f"{path}/resume", json={})).json()
    assert (asked["phase"], asked["reason"]) == ("hibernating", "Hibernated: for lunch")
    assert (kept["phase"], kept["keeping"]["held"]) == ("hibernated", 3)
    assert kept["keeping"]["kept_since"] == kept["phase_since"]
    assert resumed["phase"] == "starting"


async def test_claim_that_hibernates_explains_itself(site):
    """Why, until when its results are kept, and how it goes on."""
    async with await site.client() as client:
        agent, claim_id, path = await _running(site, client)
        agent.results[claim_id] = 3
        await client.post(f"{path}/hibernate", json={})
        await site.come_up(agent)
        first, kept, more = (await client.get(f"{path}/explanation")).json()["lines"]
    assert "3 results (3 B) kept for 7 d at most" in first
    assert kept.startswith("Its results are kept for another 7 d")
    assert more.startswith("Resume it")


async def test_what_cannot_be_kept_is_shown_by_key(site):
    """With why, and how many more there are."""
    async with await site.client() as client:
        agent, claim_id, path = await _running(site, client)
        agent.unkept[claim_id] = (Unkept(key="x-1", reason=UnkeptReason.UNWRITABLE, nbytes=5),)
        await client.post(f"{path}/hibernate", json={})
        await site.come_up(agent)
        view = (await client.get(path)).json()
    assert (view["phase"], view["keeping"]["unkept_count"]) == ("running", 1)
    assert view["keeping"]["unkept"][0]["key"] == "x-1"
    assert view["keeping"]["unkept"][0]["reason"] == "unwritable"


async def test_hibernation_survives_a_restart(site):
    """All that is known of it is in the database."""
    async with await site.client() as client:
        agent, claim_id, path = await _running(site, client)
        agent.results[claim_id] = 3
        await client.post(f"{path}/hibernate", json={})
        await site.come_up(agent)
    [record] = site.parts.service.store.load().claims
    assert record == site.parts.service.books.claims[claim_id]
    assert record.claim.hibernation.results == 3


async def test_what_cannot_be_is_a_conflict(site):
    """A claim that waits has nothing to keep, one that runs nothing to resume to."""
    async with await site.client() as client:
        waits = (await client.post("/api/v1/claims", json=_BODY)).json()["id"]
        refused = await client.post(f"/api/v1/claims/{waits}/hibernate", json={})
        unmoved = await client.post(f"/api/v1/claims/{waits}/resume", json={})
    assert (refused.status_code, unmoved.status_code) == (409, 409)
    assert "is pending" in refused.json()["title"] + refused.json().get("detail", "")
