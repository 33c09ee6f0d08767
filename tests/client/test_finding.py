"""Which claim a name means, and that "all" is all."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from jupyter_gpupool.client.address import PoolAddress
from jupyter_gpupool.client.pool_client import PoolClient
from jupyter_gpupool.pool.errors import BadRequest, NotFound

NOW = datetime(2026, 11, 5, 12, tzinfo=UTC).isoformat()


@dataclass
class Manager:
    """As much of a manager as lists, shows and releases claims; ann, an admin, asks."""

    claims: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, claim_id: str, *, name: str = "", owner: str = "ann") -> None:
        self.claims[claim_id] = {
            "id": claim_id,
            "name": name or claim_id,
            "owner": owner,
            "phase": "running",
            "phase_since": NOW,
            "reason": "",
            "workers": {"min": 1, "max": 1},
            "model": "",
            "priority": "interactive",
            "created_at": NOW,
            "seq": 1,
        }

    def end(self, claim_id: str, minute: int) -> None:
        """That minute past twelve."""
        since = datetime(2026, 11, 5, 12, minute, tzinfo=UTC).isoformat()
        self.claims[claim_id] |= {"phase": "ended", "end": "released", "phase_since": since}

    def answer(self, request: httpx.Request) -> httpx.Response:
        match request.url.path.removeprefix("/api/v1").split("/")[1:]:
            case ["status"]:
                counts = dict.fromkeys(("hosts", "devices", "free", "waiting", "running"), 0)
                me = {"version": "0", "user": "ann", "role": "admin", "simulated": True}
                return httpx.Response(200, json={**counts, **me, "my_claims": 0, "seq": 1})
            case ["claims"]:
                return httpx.Response(200, json=self._listed(request.url.params))
            case ["claims", claim_id, *release] if claim_id in self.claims:
                if release:
                    self.claims[claim_id]["phase"] = "ending"
                return httpx.Response(200, json=self.claims[claim_id])
        problem = {"type": "urn:gpupool:problem:not-found", "title": "", "status": 404}
        return httpx.Response(404, content=json.dumps({**problem, "detail": "None."}))

    def _listed(self, params: httpx.QueryParams) -> list[dict[str, Any]]:
        mine = [c for c in self.claims.values() if params.get("owner") in (None, c["owner"])]
        if not params.get("ended"):
            mine = [claim for claim in mine if claim["phase"] != "ended"]
        # What is ending is freed by and by, so that older ones come into the list.
        living = [claim for claim in mine if claim["phase"] != "ending"] or mine
        return living[: int(params.get("limit", 200))]


@pytest.fixture
def manager() -> Manager:
    return Manager()


@pytest.fixture
async def client(address: PoolAddress, manager: Manager) -> AsyncIterator[PoolClient]:
    client = PoolClient(address, transport=httpx.MockTransport(manager.answer))
    yield client
    await client.close()


Add = Callable[..., None]


async def test_old_claim_is_found_among_many(manager: Manager, client: PoolClient) -> None:
    """By name and by id, beyond what the manager lists unasked."""
    for number in range(400):
        manager.add(f"c-{number}")
    manager.add("c-old", name="old")
    assert [(await client.find_claim(name)).id for name in ("old", "c-old")] == ["c-old"] * 2


async def test_own_claim_goes_before_a_strangers(manager: Manager, client: PoolClient) -> None:
    """An admin who says a name means their own."""
    manager.add("c-1", name="train", owner="bob")
    manager.add("c-2", name="train")
    assert (await client.find_claim("train")).id == "c-2"


async def test_strangers_claim_is_found_by_an_admin(manager: Manager, client: PoolClient) -> None:
    """If nothing of their own has that name."""
    manager.add("c-1", name="train", owner="bob")
    assert (await client.find_claim("train")).id == "c-1"


async def test_name_that_several_have_is_refused(manager: Manager, client: PoolClient) -> None:
    """With the ids to choose from."""
    manager.add("c-1", name="train")
    manager.add("c-2", name="train")
    with pytest.raises(BadRequest, match="c-1, c-2"):
        await client.find_claim("train")


async def test_ended_claim_is_found_when_asked_for(manager: Manager, client: PoolClient) -> None:
    """The one of the name that ended last, our own alone, and never before one that lives."""
    for number, minute in enumerate((10, 30, 20)):
        manager.add(f"c-{number}", name="train")
        manager.end(f"c-{number}", minute)
    manager.add("c-bob", name="theirs", owner="bob")
    manager.end("c-bob", 40)
    assert (await client.find_claim("train", ended=True)).id == "c-1"
    for name, ended in (("train", False), ("theirs", True)):
        with pytest.raises(NotFound, match="no claim"):
            await client.find_claim(name, ended=ended)
    manager.add("c-new", name="train")
    assert (await client.find_claim("train", ended=True)).id == "c-new"


async def test_unknown_name_is_said(manager: Manager, client: PoolClient) -> None:
    """Whatever it is made of."""
    with pytest.raises(NotFound, match="no claim"):
        await client.find_claim("no-such/\udcff")


async def test_all_is_all(manager: Manager, client: PoolClient) -> None:
    """However many claims one holds, and nobody else's."""
    for number in range(1200):
        manager.add(f"c-{number}")
    manager.add("c-bob", owner="bob")
    released = await client.release_all("done")
    assert len(released) == 1200
    assert manager.claims["c-bob"]["phase"] == "running"
