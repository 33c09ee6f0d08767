"""The policy's routes as methods: bodies in, views out. No decision is made here.

Part of `pool_client.PoolClient`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupyter_gpupool.protocol.dry_run import DryRunBody, DryRunView
from jupyter_gpupool.protocol.policy_views import (
    AppliedView,
    ApplyBody,
    CheckBody,
    CheckView,
    DiffView,
    PolicyView,
    RevisionView,
    RollbackBody,
)

from .reading import one, several

if TYPE_CHECKING:
    from .http import Http


class PolicyClient:
    """All that can be asked of the policy. Every method raises PoolError, and nothing else."""

    def __init__(self, http: "Http") -> None:
        self._http = http

    async def current(self) -> PolicyView:
        """What is in force, with the queues as they stand now."""
        return one(PolicyView, await self._http.send("GET", "/policy"))

    async def revisions(
        self, *, before: int | None = None, limit: int | None = None
    ) -> Sequence[RevisionView]:
        """The revisions without their documents, newest first."""
        params = {"before": before, "limit": limit}
        return several(
            RevisionView, await self._http.send("GET", "/policy/revisions", params=params)
        )

    async def revision(self, number: int) -> RevisionView:
        """A revision with its document."""
        return one(RevisionView, await self._http.send("GET", f"/policy/revisions/{number}"))

    async def diff(self, before: int | None = None, after: int | None = None) -> DiffView:
        """What differs between two revisions; the last change unless named."""
        params = {"from": before, "to": after}
        return one(DiffView, await self._http.send("GET", "/policy/diff", params=params))

    async def check(self, body: CheckBody) -> CheckView:
        """What would come of applying a document."""
        return one(CheckView, await self._http.send("POST", "/policy/check", body=body))

    async def dry_run(self, body: DryRunBody) -> DryRunView:
        """What a document's rules on idle claims would have done lately."""
        answer = await self._http.send("POST", "/policy/dry-run", body=body)
        return one(DryRunView, answer)

    async def apply(self, body: ApplyBody) -> AppliedView:
        """Put a document into force."""
        return one(AppliedView, await self._http.send("POST", "/policy/apply", body=body))

    async def roll_back(self, body: RollbackBody) -> AppliedView:
        """Put the document of an earlier revision into force again."""
        return one(AppliedView, await self._http.send("POST", "/policy/rollback", body=body))
