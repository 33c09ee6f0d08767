"""The manager's HTTP API as a scenario uses it: every acknowledged claim is written down.

Called by the running pool, once for each user. Deliberately not our own client: what is checked
is the wire, and the journal must not share a mistake with the code under test.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
from waiting import eventually

Json = Mapping[str, Any]


@dataclass
class Journal:
    """What the manager has acknowledged: claim ids by idempotency key."""

    claims: dict[str, str] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, ...]:
        """Every acknowledged claim, oldest first."""
        return tuple(dict.fromkeys(self.claims.values()))


class Api:
    """One user's way to the manager."""

    def __init__(self, url: str, token: str, journal: Journal) -> None:
        self.url = url
        self.token = token
        self.journal = journal
        self._http = httpx.Client(
            base_url=f"{url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=10,
            trust_env=False,
        )

    def close(self) -> None:
        """Give its connections back."""
        self._http.close()

    def get(self, path: str, **query: object) -> Any:
        """A resource, which must be there."""
        return self._answer(self._http.get(path, params={k: str(v) for k, v in query.items()}))

    def post(self, path: str, body: Json, key: str | None = None) -> Any:
        """Create or change something, which must be allowed."""
        return self._answer(self.try_post(path, body, key))

    def try_post(self, path: str, body: Json, key: str | None = None) -> httpx.Response:
        """Create or change something and give back the answer, whatever it is."""
        headers = {"Idempotency-Key": key or uuid4().hex}
        return self._http.post(path, json=dict(body), headers=headers)

    def try_get(self, path: str) -> httpx.Response:
        """A resource, or the refusal."""
        return self._http.get(path)

    def claim(self, workers: int = 1, most: int | None = None, **terms: object) -> str:
        """The id of a new claim, once the manager has answered 201."""
        key = uuid4().hex
        body = {"workers": {"min": workers, "max": most or workers}, **terms}
        # A manager that is killed between commit and answer is asked again with the same key.
        return str(eventually(lambda: self._claim_once(body, key), 30, "a claim is acknowledged"))

    def _claim_once(self, body: Json, key: str) -> str:
        try:
            response = self.try_post("/claims", body, key)
        except httpx.TransportError:
            return ""
        if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            return ""
        claim_id = str(self._answer(response)["id"])
        self.journal.claims[key] = claim_id
        return claim_id

    def scale(self, claim_id: str, workers: int) -> Json:
        """Other bounds for a claim."""
        bounds = {"min": workers, "max": workers}
        answer: Json = self.post(f"/claims/{claim_id}/scale", {"workers": bounds})
        return answer

    def release(self, claim_id: str) -> Json:
        """Give a claim back; a manager that is away is asked again."""
        return eventually(lambda: self._release_once(claim_id), 30, f"{claim_id} is released")

    def _release_once(self, claim_id: str) -> Json:
        try:
            answer: Json = self.post(f"/claims/{claim_id}/release", {})
        except httpx.TransportError:
            return {}
        return answer

    def hibernate(self, claim_id: str) -> Json:
        """Have a claim give its devices back and keep its results."""
        answer: Json = self.post(f"/claims/{claim_id}/hibernate", {})
        return answer

    def resume(self, claim_id: str) -> Json:
        """Have devices again for a claim that hibernates."""
        answer: Json = self.post(f"/claims/{claim_id}/resume", {})
        return answer

    def view(self, claim_id: str) -> Json:
        """A claim as it is now; {} while the manager is away."""
        try:
            answer: Json = self.get(f"/claims/{claim_id}")
        except httpx.TransportError:
            return {}
        return answer

    def phase(self, claim_id: str) -> str:
        """A claim's phase, "" while the manager is away."""
        return str(self.view(claim_id).get("phase", ""))

    def running_workers(self, claim_id: str) -> int:
        """How many of its workers are registered."""
        leases = self.view(claim_id).get("leases", ())
        return sum(lease["phase"] == "running" for lease in leases)

    def reasons(self, claim_id: str) -> list[str]:
        """Every sentence its user was told, oldest first."""
        events = self.get("/events", claim=claim_id, limit=500)
        return [event["reason"] for event in events]

    def claims(self) -> Iterator[Json]:
        """Every claim that has not ended."""
        yield from self.get("/claims", limit=1000)

    def _answer(self, response: httpx.Response) -> Any:
        assert response.is_success, (
            f"{response.request.url}: {response.status_code} {response.text}"
        )
        return response.json() if response.content else None
