"""The secret of a token: 256 random bits. Loads nothing heavy."""

import secrets

_PREFIX = "gpt_"


def new_secret() -> str:
    """A new token's secret."""
    return _PREFIX + secrets.token_urlsafe(32)
