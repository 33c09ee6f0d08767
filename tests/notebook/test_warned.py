"""A warning in words: what goes back, when, why, and how to answer."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from jupyter_gpupool.notebook.warned import answers_text, keep_minutes, warning_sentence
from jupyter_gpupool.protocol.keeping_view import KeepingView
from jupyter_gpupool.protocol.warned import KeepView, WarningView

NOW = datetime(2026, 11, 30, 14, 16, tzinfo=UTC)
WHY = "Your 2 A100 have been idle for 15 min (no tasks, GPU 0 %, 31 GiB held)."


Warn = Callable[..., WarningView]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, f"{WHY} They go back at 14:20; results are kept."),
        ({"action": "release"}, f"{WHY} They go back at 14:20; results are lost."),
        (
            {"action": "release", "are_several": False},
            f"{WHY} It goes back at 14:20; results are lost.",
        ),
        (
            {"action": "shrink"},
            f"{WHY} The claim goes down to its fewest workers at 14:20.",
        ),
        ({"action": None, "why": ""}, "Goes back 14:20: Long."),
        (
            {"rule": "kept-results", "action": None, "reason": "42 results kept."},
            "42 results kept. Results are kept until 14:20.",
        ),
    ],
)
def test_sentence_says_why_what_and_when(
    a_warning: Warn, changes: dict[str, Any], said: str
) -> None:
    """The clock is the reader's; what others need is told by its own reason."""
    assert warning_sentence(a_warning(**changes), NOW) == said


def test_claim_without_results_promises_none(a_warning: Warn) -> None:
    """Nothing is kept for it: the moment is when its hibernation ends."""
    warning = a_warning(rule="kept-results", action=None, reason="It had no finished results.")
    said = warning_sentence(warning, NOW, KeepingView(held=0))
    assert said == "It had no finished results. It may hibernate until 14:20."
    assert "Results are kept" in warning_sentence(warning, NOW, KeepingView(held=1))


@pytest.mark.parametrize(
    ("keep", "minutes"),
    [
        (KeepView(longest_s=7200), 60),
        (KeepView(longest_s=1800), 30),
        (KeepView(longest_s=59), 0),
        (None, 0),
    ],
)
def test_keep_of_one_press_is_what_the_policy_still_allows(
    keep: KeepView | None, minutes: int
) -> None:
    """An hour at most, in whole minutes."""
    assert keep_minutes(keep) == minutes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Keep it: %gpupool keep ann 1h · Release it now: %gpupool release ann"),
        (
            {"keep": KeepView(longest_s=1800, asks_reason=True)},
            'Keep it: %gpupool keep ann 30min --reason "…" · Release it now: %gpupool release ann',
        ),
        ({"keep": None}, "Release it now: %gpupool release ann"),
        ({"rule": "kept-results"}, "Resume it: %gpupool resume ann"),
    ],
)
def test_answers_are_commands_that_work_as_they_stand(
    a_warning: Warn, changes: dict[str, Any], said: str
) -> None:
    """None is offered that would be refused."""
    assert answers_text("ann", a_warning(**changes), "%gpupool") == said


def test_name_with_a_blank_is_one_word_of_the_command(a_warning: Warn) -> None:
    """As the shell and the magic read it."""
    assert "release 'my run'" in answers_text("my run", a_warning(), "%gpupool")
