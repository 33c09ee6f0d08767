"""`on_reclaim`: told once a warning, in a thread of its own, whatever the callback does."""

import queue
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from jupyter_gpupool.notebook.reclaiming import Reclaim, Reclaiming
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.warned import WarningView

WITHIN_S = 10
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
IDLE = WarningView(rule="idle", deadline=NOW, reason="No tasks.")
LIMIT = WarningView(rule="time-limit", deadline=NOW, reason="Its time is up.")
View = Callable[..., ClaimView]


def test_what_cannot_be_called_is_refused_at_once() -> None:
    """Not when something is about to be taken."""
    with pytest.raises(BadRequest, match="on_reclaim=5 cannot be called"):
        Reclaiming().add(5)  # type: ignore[arg-type]


def test_callback_gets_rule_deadline_and_reason(a_view: View) -> None:
    """All that its user needs to decide."""
    told: queue.SimpleQueue[Reclaim] = queue.SimpleQueue()
    reclaiming = Reclaiming()
    reclaiming.add(told.put)
    reclaiming.hear(a_view(warning=IDLE))
    expected = Reclaim(claim="mine", rule="idle", deadline=NOW, reason="No tasks.")
    assert told.get(timeout=WITHIN_S) == expected


def test_each_warning_is_told_once(a_view: View) -> None:
    """However often the claim is seen with it."""
    told: queue.SimpleQueue[Reclaim] = queue.SimpleQueue()
    reclaiming = Reclaiming()
    reclaiming.add(told.put)
    for warning in (IDLE, IDLE, None, None):
        reclaiming.hear(a_view(warning=warning))
    reclaiming.hear(a_view(warning=LIMIT))
    rules = {told.get(timeout=WITHIN_S).rule, told.get(timeout=WITHIN_S).rule}
    assert rules == {"idle", "time-limit"}
    assert told.empty()


def test_late_callback_hears_of_the_present_warning(a_view: View) -> None:
    """It need not be there from the start."""
    told: queue.SimpleQueue[Reclaim] = queue.SimpleQueue()
    reclaiming = Reclaiming()
    reclaiming.hear(a_view(warning=IDLE))
    reclaiming.add(told.put)
    assert told.get(timeout=WITHIN_S).rule == "idle"


def test_slow_callback_holds_up_nobody(a_view: View) -> None:
    """Neither the caller nor the next callback."""
    go_on, told = threading.Event(), threading.Event()
    reclaiming = Reclaiming()
    reclaiming.add(lambda _reclaim: go_on.wait(WITHIN_S))
    reclaiming.add(lambda _reclaim: told.set())
    reclaiming.hear(a_view(warning=IDLE))
    assert told.wait(WITHIN_S)
    go_on.set()


def test_callback_that_fails_is_shown(a_view: View, capsys: pytest.CaptureFixture[str]) -> None:
    """Its own traceback, and the next one is called all the same."""
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def fail(_reclaim: Reclaim) -> None:
        told.put(threading.current_thread())
        raise ValueError("my own mistake")

    reclaiming = Reclaiming()
    reclaiming.add(fail)
    reclaiming.hear(a_view(warning=IDLE))
    told.get(timeout=WITHIN_S).join(WITHIN_S)
    assert "ValueError: my own mistake" in capsys.readouterr().err
