"""The one place where a test waits for a fact that nobody announces, such as a line of /proc.

Called where whole processes are tested; whatever has an event or a pidfd is waited for there.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PAUSE_S = 0.02


def eventually(
    look: Callable[[], T],
    deadline_s: float = 60.0,
    what: str = "what is waited for",
    *,
    context: Callable[[], str] = lambda: "",
) -> T:
    """What `look` gives once it is true-like.

    Raises:
        AssertionError: At the deadline, naming `what`, the last look and the context.
    """
    until = time.monotonic() + deadline_s
    while not (seen := look()):
        if time.monotonic() > until:
            raise AssertionError(f"not within {deadline_s} s: {what}; last: {seen!r}\n{context()}")
        time.sleep(_PAUSE_S)
    return seen


def stays(look: Callable[[], object], span_s: float, what: str) -> None:
    """Check that `look` is true-like all the time for a while: a promise that nothing happens.

    Raises:
        AssertionError: As soon as it is not.
    """
    until = time.monotonic() + span_s
    while time.monotonic() < until:
        assert look(), f"no longer true: {what}"
        time.sleep(_PAUSE_S)
