"""Sizes, times and amounts of the policy document as numbers, each refused with its key.

Called by `policy` and `idle_policy` while a document becomes the pool's own policy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import parse_bytes, parse_duration

Amount = Annotated[float, Field(ge=0, le=1e9)]
_NO_TIME = ("0", "0s")


def thousandths(value: float | None) -> int | None:
    """An amount as a whole number; what is not said stays so."""
    return None if value is None else round(value * 1000)


def bytes_of(text: str, key: str) -> int:
    """A size.

    Raises:
        BadRequest: If it is none.
    """
    with under(key):
        return parse_bytes(text)


def bytes_or_none(text: str | None, key: str) -> int | None:
    """A size, or None if none is said.

    Raises:
        BadRequest: If it is none.
    """
    return None if text is None else bytes_of(text, key)


def seconds(text: str, key: str) -> float:
    """A time, which may be none at all.

    Raises:
        BadRequest: If it is no time.
    """
    return 0.0 if text.strip() in _NO_TIME else above_zero(text, key)


def above_zero(text: str, key: str) -> float:
    """A time above zero.

    Raises:
        BadRequest: If it is none.
    """
    with under(key):
        return parse_duration(text).total_seconds()


def seconds_or_none(text: str | None, key: str) -> float | None:
    """A time, or None if none is said.

    Raises:
        BadRequest: If it is no time.
    """
    return None if text is None else seconds(text, key)


class _AtKey(BadRequest):
    """A refusal that names a key already; `said` is the sentence without it."""

    def __init__(self, said: str, *, field: str, hint: str) -> None:
        super().__init__(f"{field}: {said}", field=field, hint=hint)
        self.said = said


@contextmanager
def under(key: str) -> Iterator[None]:
    """Let what is refused within be refused with its key, and with the key below that it names.

    Raises:
        BadRequest: If anything is refused.
    """
    try:
        yield
    except BadRequest as error:
        said = error.said if isinstance(error, _AtKey) else error.message
        whole = f"{key}.{error.field}" if error.field else key
        raise _AtKey(said, field=whole, hint=error.hint) from error
