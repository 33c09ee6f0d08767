"""Tells user code that something is about to be taken from its claim: `on_reclaim`.

Used by `cluster`, which passes on every change it hears of. Callbacks run in a thread of their
own: a slow one, or one that fails, holds up nothing.
"""

import reprlib
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.api import ClaimView


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """What will be taken from a claim, unless something changes.

    Attributes:
        claim: The claim's name.
        rule: The policy's rule that takes it.
        deadline: When.
        reason: Why, in one sentence.
    """

    claim: str
    rule: str
    deadline: datetime
    reason: str


OnReclaim = Callable[[Reclaim], object]


def check_callback(callback: OnReclaim) -> None:
    """Refuse what could not be called once it is needed.

    Raises:
        BadRequest: If it cannot be called.
    """
    if not callable(callback):
        raise BadRequest(
            f"on_reclaim={reprlib.repr(callback)} cannot be called.",
            field="on_reclaim",
            hint="Give a function of one argument, the Reclaim.",
        )


class Reclaiming:
    """The callbacks of one claim; each is called once a warning."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[OnReclaim] = []
        self._last: Reclaim | None = None

    def add(self, callback: OnReclaim) -> None:
        """Call this one too, at once if the claim is under a warning already.

        Raises:
            BadRequest: If it cannot be called.
        """
        check_callback(callback)
        with self._lock:
            self._callbacks.append(callback)
            last = self._last
        if last is not None:
            _call_soon(callback, last)

    def hear(self, view: ClaimView) -> None:
        """The claim as it is now; from any thread, and as often as anybody likes."""
        now = _reclaim(view)
        with self._lock:
            is_new, self._last = now != self._last, now
            callbacks = tuple(self._callbacks)
        if is_new and now is not None:
            for callback in callbacks:
                _call_soon(callback, now)


def _reclaim(view: ClaimView) -> Reclaim | None:
    warning = view.warning
    if warning is None:
        return None
    return Reclaim(
        claim=view.name, rule=warning.rule, deadline=warning.deadline, reason=warning.reason
    )


def _call_soon(callback: OnReclaim, reclaim: Reclaim) -> None:
    # A daemon: a callback that waits for ever must not keep Python from ending.
    threading.Thread(
        target=_call, args=(callback, reclaim), daemon=True, name="gpupool on_reclaim"
    ).start()


def _call(callback: OnReclaim, reclaim: Reclaim) -> None:
    try:
        callback(reclaim)
    except Exception:  # noqa: BLE001 - it is the user's code: shown, and nothing else stops
        traceback.print_exc()
