"""Waiting for what other processes do."""

import time
from collections.abc import Callable
from typing import TypeVar

_WITHIN_S = 60.0
T = TypeVar("T")


def eventually(look: Callable[[], T]) -> T:
    """What `look` finds, once that is anything."""
    deadline_s = time.monotonic() + _WITHIN_S
    while not (found := look()):
        assert time.monotonic() < deadline_s, f"not within {_WITHIN_S:.0f} s"
        time.sleep(0.02)
    return found
