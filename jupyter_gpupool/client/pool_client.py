"""The manager's API as methods: a route each, bodies in, views out. No decision is made here.

Used on the background loop by `notebook`, and by `cli`. The routes' table is in
docs/architecture.md.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from jupyter_gpupool.pool.claim import OVER
from jupyter_gpupool.pool.errors import BadRequest, NotFound
from jupyter_gpupool.protocol.api import (
    ClaimBody,
    ClaimView,
    ConnectionView,
    DeviceView,
    EventView,
    HibernateBody,
    HostView,
    NewTokenView,
    ReleaseBody,
    ResumeBody,
    ScaleBody,
    StatusView,
    TokenBody,
    TokenView,
    Workers,
)
from jupyter_gpupool.protocol.estimates import EstimateView
from jupyter_gpupool.protocol.reserving import ReservationView, ReserveBody
from jupyter_gpupool.protocol.usage import UsageBy, UsageView
from jupyter_gpupool.protocol.using import (
    ActivityBody,
    EnvironmentView,
    ExplanationView,
    KeepAliveBody,
    KernelBody,
    LogsView,
)

from .address import PoolAddress
from .bodies import make
from .http import PATIENCE_S, Http, Reply
from .policy_client import PolicyClient
from .reading import one, several

if TYPE_CHECKING:
    import httpx

_MOST_LISTED = 1000
"""What the manager lists at once, at most."""
_MOST_SHOWN = 5


class PoolClient:
    """All that can be asked of a manager. Every method raises PoolError, and nothing else.

    Attributes:
        policy: What can be asked of the policy.
    """

    def __init__(
        self, address: PoolAddress, *, transport: "httpx.AsyncBaseTransport | None" = None
    ) -> None:
        self.address = address
        self._http = Http(address, transport=transport)
        self.policy = PolicyClient(self._http)

    async def status(self, *, patience_s: float = PATIENCE_S) -> StatusView:
        """The pool in one look, and who we are to it."""
        answer = await self._http.send("GET", "/status", patience_s=patience_s)
        return one(StatusView, answer)

    async def request_claim(self, body: ClaimBody, *, key: str | None = None) -> ClaimView:
        """Ask for a claim. With the same key a second time: the same claim, nothing new."""
        answer = await self._http.send("POST", "/claims", body=body, key=key)
        return one(ClaimView, answer)

    async def estimate(self, body: ClaimBody) -> EstimateView:
        """When this claim would start; nothing is claimed."""
        return one(EstimateView, await self._http.send("POST", "/estimates", body=body))

    async def claims(
        self, *, owner: str | None = None, ended: bool = False, limit: int | None = None
    ) -> Sequence[ClaimView]:
        """Claims, ours or all that we may see; those that have ended only if wished."""
        params = {"owner": owner, "ended": ended or None, "limit": limit}
        return several(ClaimView, await self._http.send("GET", "/claims", params=params))

    async def claim(self, claim_id: str, *, patience_s: float = PATIENCE_S) -> ClaimView:
        """One claim as it is now."""
        path = f"/claims/{_quoted(claim_id)}"
        answer = await self._http.send("GET", path, patience_s=patience_s)
        return one(ClaimView, answer)

    async def find_claim(self, name_or_id: str, *, ended: bool = False) -> ClaimView:
        """The claim of this id, or else the one of this name that has not ended, our own first.

        Args:
            name_or_id: What its user calls it.
            ended: If none lives, take our own of this name that ended last.

        Raises:
            NotFound: If there is none.
            BadRequest: If several that live have this name.
        """
        with contextlib.suppress(NotFound):
            return await self.claim(name_or_id)
        me = (await self.status()).user
        found = await self._named(name_or_id, owner=me) or await self._named(name_or_id)
        if not found and ended:
            found = await self._ended_last(name_or_id, owner=me)
        if not found:
            hint = "See: jupyter gpupool claims" + (" --ended" if ended else "")
            raise NotFound(f"There is no claim {name_or_id[:200]!r}.", hint=hint)
        if len(found) > 1:
            ids = ", ".join(view.id for view in found[:_MOST_SHOWN])
            raise BadRequest(
                f"{len(found)} claims are named {name_or_id!r}.", hint=f"Choose by id: {ids}."
            )
        return found[0]

    async def _named(self, name: str, *, owner: str | None = None) -> Sequence[ClaimView]:
        views = await self.claims(owner=owner, limit=_MOST_LISTED)
        return [view for view in views if view.name == name]

    async def _ended_last(self, name: str, *, owner: str) -> Sequence[ClaimView]:
        """The one of this name that ended last, if it is among the owner's youngest thousand."""
        views = await self.claims(owner=owner, ended=True, limit=_MOST_LISTED)
        named = [view for view in views if view.name == name and view.end is not None]
        return sorted(named, key=lambda view: view.phase_since)[-1:]

    async def release_all(self, reason: str = "") -> Sequence[ClaimView]:
        """Give back every claim of our own, however many there are."""
        me = (await self.status()).user
        released: dict[str, ClaimView] = {}
        while fresh := [
            view.id
            for view in await self.claims(owner=me, limit=_MOST_LISTED)
            if view.phase not in OVER and view.id not in released
        ]:
            for claim_id in fresh:
                released[claim_id] = await self.release(claim_id, reason)
        return tuple(released.values())

    async def scale(self, claim_id: str, minimum: int, maximum: int) -> ClaimView:
        """Give a claim other bounds."""
        body = make(ScaleBody, workers=make(Workers, min=minimum, max=maximum))
        path = f"/claims/{_quoted(claim_id)}/scale"
        return one(ClaimView, await self._http.send("POST", path, body=body))

    async def release(
        self, claim_id: str, reason: str = "", *, patience_s: float = PATIENCE_S
    ) -> ClaimView:
        """Give a claim back. What has ended already stays as it is."""
        path = f"/claims/{_quoted(claim_id)}/release"
        body = make(ReleaseBody, reason=reason)
        answer = await self._http.send("POST", path, body=body, patience_s=patience_s)
        return one(ClaimView, answer)

    async def hibernate(
        self, claim_id: str, reason: str = "", *, key: str | None = None
    ) -> ClaimView:
        """Give a claim's devices back and keep its results."""
        path = f"/claims/{_quoted(claim_id)}/hibernate"
        body = make(HibernateBody, reason=reason)
        return one(ClaimView, await self._http.send("POST", path, body=body, key=key))

    async def resume(self, claim_id: str, *, key: str | None = None) -> ClaimView:
        """Have devices again for a claim that hibernates."""
        path = f"/claims/{_quoted(claim_id)}/resume"
        return one(ClaimView, await self._http.send("POST", path, body=make(ResumeBody), key=key))

    async def connection(self, claim_id: str) -> ConnectionView:
        """What is needed to reach our own claim's scheduler."""
        answer = await self._http.send("GET", f"/claims/{_quoted(claim_id)}/connection")
        return one(ConnectionView, answer)

    async def attach_kernel(self, claim_id: str, kernel: str, body: KernelBody) -> ClaimView:
        """Say that this kernel uses the claim."""
        path = f"/claims/{_quoted(claim_id)}/kernels/{_quoted(kernel)}"
        return one(ClaimView, await self._http.send("PUT", path, body=body))

    async def detach_kernel(
        self, claim_id: str, kernel: str, *, patience_s: float = PATIENCE_S
    ) -> None:
        """Say that this kernel uses the claim no more."""
        path = f"/claims/{_quoted(claim_id)}/kernels/{_quoted(kernel)}"
        await self._http.send("DELETE", path, patience_s=patience_s)

    async def report_activity(self, body: ActivityBody) -> None:
        """Say what a Jupyter server saw of its kernels."""
        await self._http.send("POST", "/kernels/activity", body=body)

    async def keep_alive(self, claim_id: str, for_s: float, reason: str = "") -> ClaimView:
        """Have the claim not taken as idle for this long; 0 takes it back."""
        path = f"/claims/{_quoted(claim_id)}/keep_alive"
        body = make(KeepAliveBody, for_s=for_s, reason=reason)
        return one(ClaimView, await self._http.send("POST", path, body=body))

    async def explanation(self, claim_id: str) -> ExplanationView:
        """Why a claim is where it is."""
        path = f"/claims/{_quoted(claim_id)}/explanation"
        return one(ExplanationView, await self._http.send("GET", path))

    async def logs(
        self, claim_id: str, *, process: str | None = None, lines: int | None = None
    ) -> LogsView:
        """The last lines of a claim's processes, or of one: "scheduler" or a lease's id."""
        path = f"/claims/{_quoted(claim_id)}/logs"
        params = {"process": process, "lines": lines}
        return one(LogsView, await self._http.send("GET", path, params=params))

    async def environments(self) -> Sequence[EnvironmentView]:
        """The Python environments that workers can run in."""
        return several(EnvironmentView, await self._http.send("GET", "/environments"))

    async def hosts(self) -> Sequence[HostView]:
        """The pool's hosts."""
        return several(HostView, await self._http.send("GET", "/hosts"))

    async def devices(self) -> Sequence[DeviceView]:
        """The pool's devices, and who has them as far as we may know."""
        return several(DeviceView, await self._http.send("GET", "/devices"))

    async def events(
        self, *, after: int | None = None, claim: str | None = None, limit: int | None = None
    ) -> Sequence[EventView]:
        """What happened, oldest first."""
        params = {"after": after, "claim": claim, "limit": limit}
        return several(EventView, await self._http.send("GET", "/events", params=params))

    async def usage(self, *, days: int, by: Sequence[UsageBy], zone: str) -> UsageView:
        """What was held, used and won back on the last days, as far as we may know."""
        params: dict[str, int | str | list[str]]
        params = {"days": days, "by": [each.value for each in by], "zone": zone}
        return one(UsageView, await self._http.send("GET", "/usage", params=params))

    async def reserve(self, body: ReserveBody) -> ReservationView:
        """Book devices for a queue."""
        return one(ReservationView, await self._http.send("POST", "/reservations", body=body))

    async def reservations(self) -> Sequence[ReservationView]:
        """What is booked and not over."""
        return several(ReservationView, await self._http.send("GET", "/reservations"))

    async def cancel_reservation(self, reservation_id: str) -> None:
        """Give a reservation up."""
        await self._http.send("DELETE", f"/reservations/{_quoted(reservation_id)}")

    async def make_token(self, body: TokenBody) -> NewTokenView:
        """A new token; its secret is in the answer and nowhere else."""
        return one(NewTokenView, await self._http.send("POST", "/tokens", body=body))

    async def tokens(self) -> Sequence[TokenView]:
        """Tokens, without their secrets."""
        return several(TokenView, await self._http.send("GET", "/tokens"))

    async def revoke_token(self, token_id: str) -> None:
        """Make a token worthless, at once."""
        await self._http.send("DELETE", f"/tokens/{_quoted(token_id)}")

    async def relay(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        params: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Reply:
        """Pass somebody else's request on, and bring back whatever is answered to it."""
        return await self._http.relay(method, path, content=content, params=params, key=key)

    async def close(self) -> None:
        """Close the connection."""
        await self._http.close()


def _quoted(segment: str) -> str:
    # A name typed by a user is no path, and need not even be text.
    return quote(segment, safe="", errors="replace").replace(".", "%2E")
