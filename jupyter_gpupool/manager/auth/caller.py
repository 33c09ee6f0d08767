"""Who is calling, and every rule on what one caller may see or do, in one place.

Called by the API's dependencies and by the event stream; no route writes an owner filter itself.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jupyter_gpupool.pool.errors import NotAllowed, NotFound
from jupyter_gpupool.pool.event import Event
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody whose credentials were accepted.

    Attributes:
        credential_id: What was shown, so that revoking it ends what was opened with it.
        until: When it ends by itself; None is never.
    """

    user: UserName
    role: Role
    credential_id: str
    until: datetime | None = None

    @property
    def is_admin(self) -> bool:
        """Whether everything of everybody may be seen and changed."""
        return self.role is Role.ADMIN


class Authenticator(Protocol):
    """Turns what a caller shows into who they are."""

    async def authenticate(self, bearer: str) -> Caller | None:
        """Who shows this bearer token, or None if it is unknown, expired or revoked."""

    def still_counts(self, caller: Caller) -> bool:
        """Whether what the caller showed has not become void since."""


def require_role(caller: Caller, *roles: Role) -> Caller:
    """The caller, if their token is of one of these roles.

    Raises:
        NotAllowed: If it is not.
    """
    if caller.role not in roles:
        raise NotAllowed(
            f"A token of role {caller.role} may not do this.",
            hint=f"Use a token of role {' or '.join(roles)}.",
        )
    return caller


def may_see(caller: Caller, owner: UserName | None) -> bool:
    """Whether something of this owner may be shown; None is everybody's."""
    return owner is None or caller.is_admin or owner == caller.user


def may_see_event(caller: Caller, event: Event) -> bool:
    """Whether an event may be shown."""
    return may_see(caller, event.owner)


def may_see_usage(caller: Caller, owner: UserName, *, leads: bool) -> bool:
    """Whether what somebody used may be shown; `leads` says that the caller leads its queue."""
    return leads or may_see(caller, owner)


def require_sight(caller: Caller, owner: UserName, what: str) -> None:
    """Let nobody learn that a stranger's thing exists.

    Raises:
        NotFound: If it is a stranger's; the same words as if there were none.
    """
    if not may_see(caller, owner):
        raise no_such(what)


def require_owner(caller: Caller, owner: UserName, what: str) -> None:
    """Only the owner, not even an admin.

    Raises:
        NotFound: If the caller may not know of it.
        NotAllowed: If they are an admin, who may know of it but not have it.
    """
    require_sight(caller, owner, what)
    if owner != caller.user:
        raise NotAllowed(f"Only the owner of {what} may have this.")


def no_such(what: str) -> NotFound:
    """What everybody is told about a thing that is not there, or not theirs."""
    return NotFound(f"There is no {what}.", hint="List what there is, and check the id.")
