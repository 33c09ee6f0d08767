"""Tokens and users, one function a command: make a token, revoke it.

Called through `Service.execute` by the API, and at start for the manager's own first tokens.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jupyter_gpupool.manager.auth.caller import Caller, may_see, no_such
from jupyter_gpupool.manager.auth.new_secret import new_secret
from jupyter_gpupool.manager.auth.tokens import TokenRecord, digest_of
from jupyter_gpupool.manager.store.sealing import Seal
from jupyter_gpupool.pool.errors import BadRequest, NotAllowed
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

from .once import OnceKey, once
from .records import UserRecord
from .unit import UnitOfWork

_MOST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeToken:
    """Somebody wants a token, for themself or, as an admin, for anybody.

    Attributes:
        os_user: Whose processes the user's claims are from now on: "" goes back to the user of the
            same name, None leaves it as it is.
        secret: What the token is to be; None makes it. Only the manager itself may choose one.
    """

    caller: Caller
    user: UserName
    role: Role
    label: str = ""
    lifetime: timedelta | None = None
    os_user: str | None = None
    key: OnceKey | None = None
    secret: str | None = field(default=None, repr=False)


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


def revoke_token(unit: UnitOfWork, command: RevokeToken) -> tuple[str, ...]:
    """Void at once, with all that its user has made with it; what was opened is the API's to close.

    Returns:
        The ids of the tokens that are void now.

    Raises:
        NotFound: If there is none, or it is a stranger's.
    """
    record = unit.tokens.get(command.token_id)
    if record is None or not may_see(command.caller, record.user):
        raise no_such(f"token {command.token_id}")
    void = list(_with_descendants(unit, record))
    for token in void:
        del unit.tokens[token.id]
    _tell_owner(unit, command.caller, record, EventKind.TOKEN_REVOKED, "revoked")
    return tuple(token.id for token in void)


def _with_descendants(unit: UnitOfWork, record: TokenRecord) -> Iterator[TokenRecord]:
    yield record
    for made in [token for token in unit.tokens.values() if token.made_by == record.id]:
        yield from _with_descendants(unit, made)


def _tell_owner(
    unit: UnitOfWork, caller: Caller, record: TokenRecord, kind: EventKind, done: str
) -> None:
    # Whoever can make somebody's token can act as them, and that must not stay unseen. The
    # manager's own tokens, which it makes without a token, are nobody's surprise.
    if caller.user != record.user and caller.credential_id:
        reason = f"{caller.user} has {done} a token of {record.user}: {record.id}, {record.role}."
        unit.record(kind, reason, owner=record.user)


def _make(unit: UnitOfWork, command: MakeToken, seal: Seal) -> str:
    secret = command.secret or new_secret()
    is_own = command.user == command.caller.user
    record = TokenRecord(
        id=f"t-{secrets.token_hex(8)}",
        digest=digest_of(secret),
        user=command.user,
        role=command.role,
        label=command.label,
        created_at=unit.now,
        expires_at=_expiry(unit, command, is_own=is_own),
        made_by=(command.caller.credential_id or None) if is_own else None,
    )
    unit.tokens[record.id] = record
    _keep_user(unit, command.user, command.os_user)
    _tell_owner(unit, command.caller, record, EventKind.TOKEN_MADE, "made")
    return f"{record.id}:{seal.close(secret)}"


def _expiry(unit: UnitOfWork, command: MakeToken, *, is_own: bool) -> datetime | None:
    # Nobody's token may outlive itself through one that it makes for its own user.
    until = command.caller.until if is_own else None
    asked = None if command.lifetime is None else unit.now + command.lifetime
    ends = [time for time in (asked, until) if time is not None]
    return min(ends, default=None)


def _keep_user(unit: UnitOfWork, name: UserName, os_user: str | None) -> None:
    before = unit.users.get(name)
    mapped = before.os_user if before is not None and os_user is None else os_user or None
    if before is None or before.os_user != mapped:
        unit.users[name] = UserRecord(name=name, os_user=mapped)


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
    for term, name in names:
        if not name.isprintable() or not name.strip() or len(name) > _MOST_NAME:
            raise BadRequest(
                f"{name[:_MOST_NAME]!r} cannot be used as {term}.",
                field=term,
                hint=f"Use up to {_MOST_NAME} printable characters.",
            )
