"""What routes need, as types in their signatures: the service, and callers by what they may do."""

import hashlib
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from jupyter_gpupool.manager.auth.caller import Authenticator, Caller, require_role
from jupyter_gpupool.manager.auth.sessions import Sessions
from jupyter_gpupool.manager.metrics import Metrics
from jupyter_gpupool.manager.service.once import OnceKey
from jupyter_gpupool.manager.service.service import Service
from jupyter_gpupool.manager.store.sealing import Seal
from jupyter_gpupool.pool.errors import BadRequest, NotAuthenticated
from jupyter_gpupool.protocol.api import IDEMPOTENCY_KEY, Role

_MOST_KEY = 200


@dataclass(slots=True, kw_only=True)
class Parts:
    """Everything the routes are given.

    Attributes:
        asked_s: Monotonic time of the last request of a person or their program.
        is_ending: The manager is on its way down.
    """

    service: Service
    authenticator: Authenticator
    sessions: Sessions
    seal: Seal
    metrics: Metrics
    asked_s: float
    is_ending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that changes something.

    Attributes:
        once: Its idempotency key, if it has one.
    """

    caller: Caller
    parts: Parts
    once: OnceKey | None

    @property
    def service(self) -> Service:
        """The service that is asked."""
        return self.parts.service


ONCE_HEADER: dict[str, Any] = {
    "parameters": [
        {
            "name": IDEMPOTENCY_KEY,
            "in": "header",
            "required": False,
            "description": "The same key a second time does nothing new. Kept for 24 hours.",
            "schema": {"type": "string", "minLength": 1, "maxLength": _MOST_KEY},
        }
    ]
}
"""For the declaration of every route that takes `UserAsks`."""


def get_parts(connection: HTTPConnection) -> Parts:
    """The parts of the application that serves this connection."""
    parts: Parts = connection.app.state.parts
    return parts


async def _service(connection: HTTPConnection) -> Service:
    return get_parts(connection).service


async def _parts(connection: HTTPConnection) -> Parts:
    return get_parts(connection)


async def authenticated(connection: HTTPConnection) -> Caller:
    """Who is calling, and that somebody does.

    Raises:
        NotAuthenticated: If they show no token, or none that counts.
    """
    caller = await _known(connection)
    if caller.role is not Role.AGENT:
        parts = get_parts(connection)
        parts.asked_s = parts.service.clock.monotonic()
    return caller


async def _known(connection: HTTPConnection) -> Caller:
    parts = get_parts(connection)
    scheme, _, bearer = connection.headers.get("authorization", "").partition(" ")
    known = scheme.lower() == "bearer" and bearer
    caller = await parts.authenticator.authenticate(bearer.strip()) if known else None
    if caller is None:
        raise NotAuthenticated(
            "No token was shown that this manager knows.",
            hint="Send Authorization: Bearer with a token that is neither expired nor revoked.",
        )
    return caller


# These call each other instead of depending on each other: every dependency that the framework
# has to resolve costs a request as much as all of ours together.
async def _user(connection: HTTPConnection) -> Caller:
    return require_role(await authenticated(connection), Role.USER, Role.ADMIN)


async def _admin(connection: HTTPConnection) -> Caller:
    return require_role(await authenticated(connection), Role.ADMIN)


async def _teller(connection: HTTPConnection) -> Caller:
    return require_role(await _known(connection), Role.USER, Role.ADMIN)


async def _agent(connection: HTTPConnection) -> Caller:
    return require_role(await authenticated(connection), Role.AGENT)


async def _asked(request: Request) -> Asked:
    parts, caller = get_parts(request), await _user(request)
    return Asked(caller=caller, parts=parts, once=await _once(request, caller))


async def _once(request: Request, caller: Caller) -> OnceKey | None:
    key = request.headers.get(IDEMPOTENCY_KEY)
    if key is None:
        return None
    if not key.isprintable() or not 1 <= len(key) <= _MOST_KEY:
        raise BadRequest(
            "The idempotency key is not usable.",
            field=IDEMPOTENCY_KEY,
            hint=f"Use 1 to {_MOST_KEY} printable characters, best a random UUID.",
        )
    asked = f"{request.method} {request.scope['path']}\n".encode() + await request.body()
    return OnceKey(user=caller.user, key=key, body=hashlib.sha256(asked).hexdigest())


async def _admin_asked(request: Request) -> Asked:
    parts, caller = get_parts(request), await _admin(request)
    return Asked(caller=caller, parts=parts, once=await _once(request, caller))


TheService = Annotated[Service, Depends(_service)]
TheParts = Annotated[Parts, Depends(_parts)]
AnyCaller = Annotated[Caller, Depends(authenticated)]
"""Whoever shows a token."""
UserCaller = Annotated[Caller, Depends(_user)]
"""A user or an admin."""
AdminCaller = Annotated[Caller, Depends(_admin)]
"""An admin, and nobody else."""
UserTells = Annotated[Caller, Depends(_teller)]
"""A user's machine that tells something of its own accord: no sign that anybody uses the pool."""
AgentCaller = Annotated[Caller, Depends(_agent)]
"""An agent, and nobody else."""
UserAsks = Annotated[Asked, Depends(_asked)]
"""A user or an admin who wants something changed: the caller, their idempotency key, the parts."""
AdminAsks = Annotated[Asked, Depends(_admin_asked)]
"""The same of an admin, and of nobody else."""
