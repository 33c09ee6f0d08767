"""Tokens over HTTP."""

import pytest

from jupyter_gpupool.protocol.api import Role


@pytest.mark.parametrize("user", ["ann o'neil", 'a "b" c', "ann@example.org", "a/b\\c", "安娜"])
async def test_user_names_may_be_anything_printable(site, user):
    """Names come from elsewhere; they only have to come back the same."""
    async with await site.client("root", Role.ADMIN) as admin:
        secret = (await admin.post("/api/v1/tokens", json={"user": user})).json()["secret"]
    async with site.anonymous({"Authorization": f"Bearer {secret}"}) as client:
        assert (await client.get("/api/v1/status")).json()["user"] == user


@pytest.mark.parametrize("user", [" ", "a\nb", "\x00", "x" * 201])
async def test_unprintable_names_are_refused(site, user):
    """They would break a log or a terminal."""
    async with await site.client("root", Role.ADMIN) as admin:
        answer = await admin.post("/api/v1/tokens", json={"user": user})
    assert (answer.status_code, answer.json()["field"]) == (422, "user")


async def test_revoked_token_is_void_at_once(site):
    """The very next request fails."""
    async with await site.client() as client:
        token = (await client.get("/api/v1/tokens")).json()[0]["id"]
        gone = await client.delete(f"/api/v1/tokens/{token}")
        after = await client.get("/api/v1/status")
    assert (gone.status_code, after.status_code) == (204, 401)


async def test_expired_token_is_void(site):
    """A lifetime of a microsecond is over."""
    async with await site.client() as client:
        made = (await client.post("/api/v1/tokens", json={"expires_in_s": 1e-6})).json()
    async with site.anonymous({"Authorization": f"Bearer {made['secret']}"}) as client:
        assert (await client.get("/api/v1/status")).status_code == 401


async def test_repeated_request_shows_the_same_secret(site):
    """A client whose answer was lost asks again with its key."""
    key = {"Idempotency-Key": "k"}
    async with await site.client() as client:
        first = (await client.post("/api/v1/tokens", json={}, headers=key)).json()
        second = (await client.post("/api/v1/tokens", json={}, headers=key)).json()
    assert first == second


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer gpt_wrong", "Basic Zm9v", "Bearer é"])
async def test_unknown_credentials_are_refused(site, shown):
    """With a challenge, and the same words for all."""
    async with site.anonymous({"Authorization": shown.encode("latin-1")}) as client:
        answer = await client.get("/api/v1/status")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
