"""The last words of a program that has ended, for the sentence that tells of its end.

Called by `local_agent`.
"""

import json
import os
from pathlib import Path

_LINES = 3
_MOST_BYTES = 8192
_MOST_LETTERS = 300


def last_words(log: Path) -> str:
    """The end of a log on one line, of log records their message alone; "" if it says nothing."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_BYTES))
            lines = file.read(_MOST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    words = [word for line in lines if (word := _plain(_message(line)))]
    return " | ".join(words[-_LINES:])


def _message(line: str) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        return line
    return str(record.get("message", line)) if isinstance(record, dict) else line


def _plain(line: str) -> str:
    return "".join(letter for letter in line if letter.isprintable())[:_MOST_LETTERS].strip()
