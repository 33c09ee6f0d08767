"""A warning stands once under the next cell, and not at all if it is settled by then."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_gpupool.notebook import next_cell as module
from jupyter_gpupool.notebook import voice
from jupyter_gpupool.notebook.next_cell import NextCell, heard
from jupyter_gpupool.notebook.voice import Voice
from jupyter_gpupool.protocol.api import ClaimView
from jupyter_gpupool.protocol.warned import WarningView

NOW = datetime(2026, 11, 30, 14, 16, tzinfo=UTC)
View = Callable[..., ClaimView]
Warn = Callable[..., WarningView]


@dataclass
class Shell:
    """A kernel's shell, as far as events go."""

    kernel: object = field(default_factory=object)
    hooks: dict[str, Callable[[Any], None]] = field(default_factory=dict)

    @property
    def events(self) -> "Shell":
        """Where hooks are registered."""
        return self

    def register(self, name: str, hook: Callable[[Any], None]) -> None:
        """As IPython's events have it."""
        self.hooks[name] = hook

    def cell_ends(self, *, silent: bool = False, store_history: bool = True) -> None:
        """A cell has run."""
        info = SimpleNamespace(silent=silent, store_history=store_history)
        self.hooks["post_run_cell"](SimpleNamespace(info=info))


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The shell of this kernel."""
    shell = Shell()
    cell = NextCell(shell)
    monkeypatch.setattr(module, "next_cell", lambda: cell)
    monkeypatch.setattr(voice, "next_cell", lambda: cell)
    monkeypatch.setattr(module, "here_and_now", lambda: NOW)
    return shell


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """What was written since it was asked last."""

    def lines() -> list[str]:
        return capsys.readouterr().err.splitlines()

    return lines


def test_warning_stands_once_under_the_next_cell(
    shell: Shell, a_view: View, a_warning: Warn, said: Callable[[], list[str]]
) -> None:
    """As one line that says why, when, and how to answer."""
    Voice().warn(a_view(warning=a_warning()))
    assert said() == []
    shell.cell_ends()
    shell.cell_ends()
    (line,) = said()
    assert line == (
        f"Claim mine: {a_warning().why} They go back at 14:20; results are kept."
        " Keep it: %gpupool keep mine 1h · Release it now: %gpupool release mine"
    )


def test_same_warning_is_never_told_twice(
    shell: Shell, a_view: View, a_warning: Warn, said: Callable[[], list[str]]
) -> None:
    """Not by another cluster of the claim, nor because less of the day is left; a later one is."""
    for warning in (a_warning(), a_warning(keep=None)):
        for one in (Voice(), Voice()):
            one.warn(a_view(warning=warning))
        shell.cell_ends()
    assert len(said()) == 1
    Voice().warn(a_view(warning=a_warning(deadline=NOW + timedelta(hours=1))))
    shell.cell_ends()
    assert len(said()) == 1


def test_code_that_is_no_cell_does_not_count(
    shell: Shell, a_view: View, a_warning: Warn, said: Callable[[], list[str]]
) -> None:
    """What a tool asks the kernel has no output that anybody sees."""
    Voice().warn(a_view(warning=a_warning()))
    shell.cell_ends(silent=True)
    shell.cell_ends(store_history=False)
    assert said() == []
    shell.cell_ends()
    assert len(said()) == 1


def test_cell_that_answers_is_not_told(
    shell: Shell, a_view: View, a_warning: Warn, said: Callable[[], list[str]]
) -> None:
    """Whether the answer, the pool's event or the end of its cluster comes first."""
    settled: tuple[Callable[[Voice], object], ...] = (
        lambda _one: heard(a_view()),
        lambda one: one.warn(a_view()),
        lambda one: one.follows_no_more("mine"),
    )
    for settle in settled:
        one = Voice()
        one.warn(a_view(warning=a_warning()))
        settle(one)
        shell.cell_ends()
    assert said() == []


def test_quiet_claim_says_nothing_there_either(
    shell: Shell, a_view: View, a_warning: Warn, said: Callable[[], list[str]]
) -> None:
    """As it was asked to."""
    Voice(quiet=True).warn(a_view(warning=a_warning()))
    shell.cell_ends()
    assert said() == []
