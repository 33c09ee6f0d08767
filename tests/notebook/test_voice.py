"""What a claim tells its user unasked."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from jupyter_gpupool.notebook.voice import Voice
from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.warned import WarningView

NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)
IDLE = WarningView(rule="idle", deadline=NOW, reason="Nothing ran for 30 minutes.")
LIMIT = WarningView(rule="time-limit", deadline=NOW, reason="Its time is nearly up.")
View = Callable[[WarningView | None], ClaimView]


@pytest.fixture
def view() -> View:
    """A running claim with this warning."""

    def build(warning: WarningView | None) -> ClaimView:
        return ClaimView.model_validate(
            {
                **dict.fromkeys(("id", "name", "owner", "model", "reason"), "mine"),
                **dict.fromkeys(("phase_since", "created_at"), NOW),
                "phase": "running",
                "priority": "interactive",
                "workers": {"min": 1, "max": 1},
                "seq": 1,
                "warning": warning,
            }
        )

    return build


def test_warning_is_told_once(view: View, capsys: pytest.CaptureFixture[str]) -> None:
    """However often the claim is seen with it; another one is told anew."""
    voice = Voice()
    for warning in (None, IDLE, IDLE, LIMIT):
        voice.warn(view(warning))
    told = capsys.readouterr().err.splitlines()
    assert ["idle" in told[0], "time-limit" in told[1], len(told)] == [True, True, 2]
    assert "mine" in told[0]
    assert IDLE.reason in told[0]


def test_warning_that_comes_back_is_told_again(
    view: View, capsys: pytest.CaptureFixture[str]
) -> None:
    """In between, it did not hold."""
    voice = Voice()
    for warning in (IDLE, None, IDLE):
        voice.warn(view(warning))
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_quiet_claim_says_nothing(view: View, capsys: pytest.CaptureFixture[str]) -> None:
    """As it was asked to."""
    Voice(quiet=True).warn(view(IDLE))
    assert capsys.readouterr().err == ""
