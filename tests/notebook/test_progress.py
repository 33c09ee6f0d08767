"""How a wait is shown: one line that changes where that can be, else a line a change."""

import pytest

from jupyter_gpupool.notebook.progress import InLines, OnTerminal, progress
from jupyter_gpupool.notebook.voice import Lasting, Voice


def test_file_gets_a_line_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    """And none for what it has already."""
    shown = InLines()
    for text in ("one", "one", "two"):
        shown.show(text)
    shown.end("")
    assert capsys.readouterr().err == "one\ntwo\n"


def test_terminal_keeps_to_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Each word over the last, and a new line only at the end."""
    shown = OnTerminal()
    shown.show("one")
    shown.show("two")
    shown.end("done")
    assert capsys.readouterr().err == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[Kdone\n"


def test_terminal_line_is_cut_to_its_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that wraps could not be overwritten."""
    monkeypatch.setenv("COLUMNS", "10")
    OnTerminal().show("a very long line")
    assert capsys.readouterr().err == "\r\x1b[Ka very l…"


def test_what_is_captured_is_no_terminal() -> None:
    """Such as pytest's own."""
    assert isinstance(progress(), InLines)


def test_lasting_line_stands_apart_from_the_wait(capsys: pytest.CaptureFixture[str]) -> None:
    """It is told once, whatever becomes of the wait."""
    voice = Voice()
    voice.hear("waits")
    voice.hear(Lasting("left behind"))
    voice.hear("waits on")
    voice.wait_is_over("runs")
    assert capsys.readouterr().err.splitlines() == ["waits", "left behind", "waits on", "runs"]


def test_short_wait_leaves_no_word(capsys: pytest.CaptureFixture[str]) -> None:
    """What was never spoken of need not be said to be over."""
    Voice().wait_is_over("runs")
    assert capsys.readouterr().err == ""


def test_quiet_wait_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """As it was asked to."""
    voice = Voice(quiet=True)
    voice.hear("waits")
    voice.hear(Lasting("left behind"))
    voice.wait_is_over("runs")
    assert capsys.readouterr().err == ""
