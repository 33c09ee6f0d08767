"""Tickets that let a dashboard's page fetch its own parts.

Called by `dashboards`. The page is its user's own HTML, so it is shown in a sandbox, and
a sandboxed page has no origin: browsers send no cookie with what it asks for. Its path therefore
holds a ticket, made when somebody with a right to it opened it. Whoever knows one can look at this
one dashboard, and at nothing else of this server.
"""

import secrets
from dataclasses import dataclass, field

LIFE_S = 600.0
"""Since its last use; an open page uses it all the time."""
_MOST = 1000


@dataclass(slots=True)
class _Ticket:
    claim_id: str
    used_s: float


@dataclass(slots=True)
class Tickets:
    """The tickets that are out. Times are seconds of one monotonic clock."""

    _out: dict[str, _Ticket] = field(default_factory=dict, repr=False)

    def issue(self, claim_id: str, now_s: float) -> str:
        """A fresh ticket for a claim's dashboard."""
        self._forget(now_s)
        secret = secrets.token_urlsafe(24)
        self._out[secret] = _Ticket(claim_id, now_s)
        return secret

    def admits(self, secret: str, claim_id: str, now_s: float) -> bool:
        """Whether this ticket is for that claim and still good, which using it prolongs."""
        ticket = self._out.get(secret)
        if ticket is None or ticket.claim_id != claim_id or now_s - ticket.used_s > LIFE_S:
            return False
        ticket.used_s = now_s
        return True

    def _forget(self, now_s: float) -> None:
        good = {s: ticket for s, ticket in self._out.items() if now_s - ticket.used_s <= LIFE_S}
        # The longest unused go first when somebody opens pages without end.
        newest = sorted(good, key=lambda secret: good[secret].used_s)[-(_MOST - 1) :]
        self._out = {secret: good[secret] for secret in newest}
