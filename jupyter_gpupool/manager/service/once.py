"""A request with an idempotency key: the second time it does nothing and gets the first answer.

Called by every command that a POST leads to, inside the command's own transaction, so that the key
and what it made are durable together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.ids import UserName

from .records import OnceRecord
from .unit import UnitOfWork

KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceKey:
    """Who asked with which key; `body` is the hash of what was asked."""

    user: UserName
    key: str
    body: str


def once(unit: UnitOfWork, key: OnceKey | None, make: Callable[[], str]) -> str:
    """The answer to this key: made now, or as it was made the first time.

    Raises:
        BadRequest: If the key was used for something else.
    """
    if key is None:
        return make()
    before = unit.once.get((key.user, key.key))
    if before is None or unit.now - before.at > KEPT:
        answer = make()
        unit.once[key.user, key.key] = OnceRecord(
            user=key.user, key=key.key, body=key.body, answer=answer, at=unit.now
        )
        return answer
    if before.body != key.body:
        raise BadRequest(
            "This idempotency key was used for another request.",
            field="Idempotency-Key",
            hint="Make a new key for each new request.",
        )
    return before.answer
