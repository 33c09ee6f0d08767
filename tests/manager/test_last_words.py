"""What is quoted of a program that has ended."""

import json
from pathlib import Path

import pytest

from jupyter_gpupool.manager.last_words import last_words


def _record(level: str, message: str) -> str:
    return json.dumps({"at": "2026-11-30T12:00:00.000Z", "level": level, "message": message})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([_record("info", "Joined."), _record("critical", "No token.")], "No token."),
        ([_record("critical", "No room.")] * 4, "No room."),
        (["Traceback:", "  File", "    line", "OSError: [1]"], "File | line | OSError: [1]"),
        (["[1, 2]", "\x1b[2Jtorn"], "[1, 2] | [2Jtorn"),
        ([], ""),
    ],
    ids=["a record", "the same again", "a traceback", "no records", "nothing"],
)
def test_end_of_a_log_is_told_on_one_line(tmp_path: Path, lines: list[str], said: str) -> None:
    """The trouble alone, and once."""
    (tmp_path / "log").write_text("\n".join(lines))
    assert last_words(tmp_path / "log") == said


def test_missing_log_says_nothing(tmp_path: Path) -> None:
    """It is no trouble of its own."""
    assert last_words(tmp_path / "log") == ""
