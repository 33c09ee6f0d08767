"""Tokens: 256 random bits that are shown once and kept only as their hash.

Hashing is a single SHA-256: there is nothing to guess in 256 random bits, so no slow hash is due.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jupyter_gpupool.manager.clock import Clock
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

from .caller import Caller

_FEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token as it is kept.

    Attributes:
        digest: SHA-256 of the secret, in hexadecimal.
        made_by: The token with which its own user made it: revoking that one revokes it too.
    """

    id: str
    digest: str
    user: UserName
    role: Role
    label: str
    created_at: datetime
    expires_at: datetime | None
    made_by: str | None = None


class TokenBooks(Protocol):
    """Where the authenticator finds tokens."""

    @property
    def tokens(self) -> Mapping[str, TokenRecord]:
        """All tokens, by their id."""

    @property
    def tokens_by_digest(self) -> Mapping[str, TokenRecord]:
        """All tokens, by the hash of their secret."""


def digest_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


class TokenAuthenticator:
    """Knows callers by the pool's own tokens, in memory: a revoked one is void at once."""

    def __init__(self, books: TokenBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock
        self.last_used: dict[str, datetime] = {}

    async def authenticate(self, bearer: str) -> Caller | None:
        """Who shows this token, or None if it is unknown, expired or revoked."""
        token = self._books.tokens_by_digest.get(digest_of(bearer))
        now = self._clock.now()
        if token is None or _is_over(token, now):
            return None
        self._remember_use(token.id, now)
        return Caller(
            user=token.user, role=token.role, credential_id=token.id, until=token.expires_at
        )

    def still_counts(self, caller: Caller) -> bool:
        """Whether what the caller showed has not become void since."""
        token = self._books.tokens.get(caller.credential_id)
        return token is not None and not _is_over(token, self._clock.now())

    def _remember_use(self, token_id: str, now: datetime) -> None:
        self.last_used[token_id] = now
        if len(self.last_used) > 2 * len(self._books.tokens) + _FEW:
            known = self.last_used.items()
            self.last_used = {i: used for i, used in known if i in self._books.tokens}


def _is_over(token: TokenRecord, now: datetime) -> bool:
    return token.expires_at is not None and token.expires_at <= now
