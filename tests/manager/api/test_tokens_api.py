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


async def test_token_does_not_outlive_the_one_that_made_it(site):
    """A token of one hour, or a stolen one, makes nothing endless."""
    async with await site.client() as client:
        first = (await client.post("/api/v1/tokens", json={"expires_in_s": 3600})).json()
    async with site.anonymous(_bearer(first)) as client:
        second = (await client.post("/api/v1/tokens", json={})).json()
    assert second["expires_at"] == first["expires_at"]


async def test_revoked_token_takes_along_what_it_has_made(site):
    """Whoever stole the first does not keep the second; tokens for others stay."""
    async with await site.client("root", Role.ADMIN) as admin:
        first = (await admin.post("/api/v1/tokens", json={"role": "admin"})).json()
        async with site.anonymous(_bearer(first)) as client:
            own = (await client.post("/api/v1/tokens", json={})).json()
            anns = (await client.post("/api/v1/tokens", json={"user": "ann"})).json()
        await admin.delete(f"/api/v1/tokens/{first['id']}")
        left = {token["id"] for token in (await admin.get("/api/v1/tokens")).json()}
    assert own["id"] not in left
    assert anns["id"] in left


async def test_user_is_told_of_tokens_that_others_make_and_revoke(site):
    """Whoever holds one can act as them; nobody else hears of it."""
    async with (
        await site.client("root", Role.ADMIN) as admin,
        await site.client("ann") as ann,
        await site.client("bob") as bob,
    ):
        made = (await admin.post("/api/v1/tokens", json={"user": "ann"})).json()["id"]
        await ann.post("/api/v1/tokens", json={})
        await admin.delete(f"/api/v1/tokens/{made}")
        anns, bobs = [(await who.get("/api/v1/events")).json() for who in (ann, bob)]
    assert [event["kind"] for event in anns] == ["token.made", "token.revoked"]
    assert all("root has" in event["reason"] and made in event["reason"] for event in anns)
    assert bobs == []


async def test_mapping_to_an_os_user_can_be_taken_back(site):
    """An empty name is the user of the same name again; none at all changes nothing."""
    seen = []
    async with await site.client("root", Role.ADMIN) as admin:
        for body in ({"os_user": "annie"}, {}, {"os_user": ""}):
            await admin.post("/api/v1/tokens", json={"user": "ann", **body})
            seen.append(site.parts.service.books.users["ann"].os_user)
    assert seen == ["annie", "annie", None]


def _bearer(made) -> dict[str, str]:
    return {"Authorization": f"Bearer {made['secret']}"}
