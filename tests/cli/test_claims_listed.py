"""What `claims` says of each claim: how it ended and why, and what is about to be taken from it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jupyter_gpupool.cli.claims import ended_after, phase_of, why
from jupyter_gpupool.protocol.api import ClaimView

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def a_claim(**changes: Any) -> ClaimView:
    """One that ended an hour ago, taken as idle."""
    return ClaimView.model_validate(
        {
            **dict.fromkeys(("id", "name", "owner"), "mine"),
            "reason": "Your A100 has been idle for 20 min (no tasks). The claim was ended.",
            "phase": "ended",
            "end": "reclaimed",
            "phase_since": NOW - timedelta(hours=1),
            "created_at": NOW - DAY,
            "model": "",
            "priority": "interactive",
            "workers": {"min": 1, "max": 1},
            "seq": 1,
            **changes,
        }
    )


def test_ended_claim_says_how_and_why() -> None:
    """With the evidence, in words."""
    assert phase_of(a_claim()) == "ended, reclaimed"
    assert "idle for 20 min (no tasks)" in why(a_claim())
    assert phase_of(a_claim(phase="running", end=None)) == "running"


def test_since_leaves_out_only_what_ended_earlier() -> None:
    """What lives is always there, however old."""
    old = a_claim(name="old", phase_since=NOW - 8 * DAY)
    alive = a_claim(name="alive", phase="running", end=None, phase_since=NOW - 30 * DAY)
    recent = a_claim(name="recent")
    left = ended_after([old, alive, recent], NOW - 7 * DAY)
    assert [view.name for view in left] == ["alive", "recent"]


@pytest.mark.parametrize("action", ["release", "hibernate"])
def test_warned_claim_says_what_goes_back_and_when(action: str) -> None:
    """Instead of the reason of its last change."""
    warning = {
        "rule": "all",
        "deadline": NOW + DAY,
        "reason": "Long.",
        "why": "Your A100 has been idle for 15 min.",
        "action": action,
    }
    said = why(a_claim(phase="running", end=None, warning=warning))
    assert said.startswith("Your A100 has been idle for 15 min. It goes back at ")
