"""Every error a user can meet, one class per thing a caller may do differently.

PoolError
├── BadRequest           what was asked makes no sense: change it
├── NotAuthenticated     no token, or one the manager does not know
├── NotAllowed           known, but this is somebody else's
├── NotFound             no such claim, host, device, token
├── Conflict             the thing is not in a state that allows it
│   └── ImpossibleTransition   (in claim_machine.py: it holds the claim's story)
├── Unavailable          try again later: manager, database or host cannot answer now
└── ClaimLost            the claim ended while it was being waited for or used
"""

import linecache
import traceback
from collections.abc import Sequence
from typing import ClassVar

_NOT_THE_USERS = ("/jupyter_gpupool/", "/site-packages/", "/lib/python")
"""Parts of the paths of files that no user has written."""


class PoolError(Exception):
    """The root. One sentence says what happened, `hint` what to do next.

    Attributes:
        reference: A stable kebab-case name, the same in API, CLI and docs.
    """

    reference: ClassVar[str] = "pool-error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def _render_traceback_(self) -> Sequence[str]:
        """What a notebook shows (IPython asks): the user's own lines and the sentence."""
        linecache.checkcache()
        frames = traceback.extract_tb(self.__traceback__)
        own = [f for f in frames if f.line and not any(p in f.filename for p in _NOT_THE_USERS)]
        lines = [f"line {frame.lineno}: {frame.line}" for frame in own]
        return [*lines, f"{type(self).__name__}: {self}"]


class BadRequest(PoolError):
    """What was asked makes no sense as it stands.

    Attributes:
        field: The name of the term that is wrong, or "" if it is the whole.
    """

    reference: ClassVar[str] = "bad-request"

    def __init__(self, message: str, *, field: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class NotAuthenticated(PoolError):
    """The caller showed no token, or one that is unknown, expired or revoked."""

    reference: ClassVar[str] = "not-authenticated"


class NotAllowed(PoolError):
    """The caller is known but has no right to this."""

    reference: ClassVar[str] = "not-allowed"


class NotFound(PoolError):
    """There is no such thing, or none that the caller may know of."""

    reference: ClassVar[str] = "not-found"


class Conflict(PoolError):
    """The thing exists but is in no state that allows this."""

    reference: ClassVar[str] = "conflict"


class Unavailable(PoolError):
    """Something that should answer cannot right now; nothing was changed."""

    reference: ClassVar[str] = "unavailable"


class ClaimLost(PoolError):
    """The claim ended while somebody waited for it or used it."""

    reference: ClassVar[str] = "claim-lost"
