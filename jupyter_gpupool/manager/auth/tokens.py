"""Tokens: 256 random bits that are shown once and kept only as their hash.

Hashing is a single SHA-256: there is nothing to guess in 256 random bits, so no slow hash is due.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from jupyter_gpupool.manager.clock import Clock
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.protocol.api import Role

from .caller import Caller

_PREFIX = "gpt_"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token as it is kept.

    Attributes:
        digest: SHA-256 of the secret, in hexadecimal.
    """

    id: str
    digest: str
    user: UserName
    role: Role
    label: str
    created_at: datetime
    expires_at: datetime | None


class TokenBooks(Protocol):
    """Where the authenticator finds tokens."""

    @property
    def tokens_by_digest(self) -> Mapping[str, TokenRecord]:
        """All tokens, by the hash of their secret."""


def new_secret() -> str:
    """A new token's secret."""
    return _PREFIX + secrets.token_urlsafe(32)


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
        if token is None or (token.expires_at is not None and token.expires_at <= now):
            return None
        self.last_used[token.id] = now
        return Caller(
            user=token.user, role=token.role, credential_id=token.id, until=token.expires_at
        )
