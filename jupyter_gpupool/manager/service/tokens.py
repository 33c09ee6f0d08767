"""Tokens and users, one function a command: make a token, revoke it.

Called through `Service.execute` by the API, and at start for the manager's own first tokens.
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from jupyter_gpupool.manager.auth.caller import Caller, may_see, no_such
from jupyter_gpupool.manager.auth.tokens import TokenRecord, digest_of, new_secret
from jupyter_gpupool.manager.store.sealing import Seal
from jupyter_gpupool.pool.errors import BadRequest, NotAllowed
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

from .once import OnceKey, once
from .records import UserRecord
from .unit import UnitOfWork

_MOST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeToken:
    """Somebody wants a token, for themself or, as an admin, for anybody."""

    caller: Caller
    user: UserName
    role: Role
    label: str = ""
    lifetime: timedelta | None = None
    os_user: str | None = None
    key: OnceKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeToken:
    """Somebody makes a token void."""

    caller: Caller
    token_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token just made, with the secret that is shown once."""

    record: TokenRecord
    secret: str


def make_token(unit: UnitOfWork, command: MakeToken, seal: Seal) -> NewToken:
    """A new token, and its user if they are new.

    Raises:
        NotAllowed: If only an admin may make such a token.
        BadRequest: If a name makes no sense, or the key was used otherwise.
    """
    _check_rights(command)
    _check_names(command)
    # A repeated request must get the same secret, so it is kept, sealed, as long as its key.
    answer = once(unit, command.key, lambda: _make(unit, command, seal))
    token_id, _, sealed = answer.partition(":")
    record = unit.tokens.get(token_id)
    if record is None:
        raise no_such(f"token {token_id}")
    return NewToken(record=record, secret=seal.open(sealed))


def revoke_token(unit: UnitOfWork, command: RevokeToken) -> None:
    """Void at once; what was opened with it is closed after the commit.

    Raises:
        NotFound: If there is none, or it is a stranger's.
    """
    record = unit.tokens.get(command.token_id)
    if record is None or not may_see(command.caller, record.user):
        raise no_such(f"token {command.token_id}")
    del unit.tokens[command.token_id]


def _make(unit: UnitOfWork, command: MakeToken, seal: Seal) -> str:
    secret = new_secret()
    lifetime = command.lifetime
    record = TokenRecord(
        id=f"t-{secrets.token_hex(8)}",
        digest=digest_of(secret),
        user=command.user,
        role=command.role,
        label=command.label,
        created_at=unit.now,
        expires_at=None if lifetime is None else unit.now + lifetime,
    )
    unit.tokens[record.id] = record
    user = unit.users.get(command.user)
    if user is None or (command.os_user is not None and user.os_user != command.os_user):
        unit.users[command.user] = UserRecord(name=command.user, os_user=command.os_user)
    return f"{record.id}:{seal.close(secret)}"


def _check_rights(command: MakeToken) -> None:
    own = command.user == command.caller.user and command.role is Role.USER
    if command.caller.is_admin or (own and command.os_user is None):
        return
    raise NotAllowed(
        "Only an admin may make a token for somebody else, of another role, or with os_user.",
        hint="Leave user, role and os_user out, or ask an admin.",
    )


def _check_names(command: MakeToken) -> None:
    names = (
        ("user", command.user),
        ("os_user", command.os_user or "-"),
        ("label", command.label or "-"),
    )
    for field, name in names:
        if not name.isprintable() or not name.strip() or len(name) > _MOST_NAME:
            raise BadRequest(
                f"{name[:_MOST_NAME]!r} cannot be used as {field}.",
                field=field,
                hint=f"Use up to {_MOST_NAME} printable characters.",
            )
