"""The last words of a program that has ended, for the sentence that tells of its end.

Called by `local_agent`.
"""

import json
import os
from pathlib import Path

_LINES = 3
_NO_WORDS = frozenset({"debug", "info"})
_MOST_BYTES = 8192
_MOST_LETTERS = 300


def last_words(log: Path) -> str:
    """The end of a log on one line; "" if it says nothing.

    Of its records, what their message is; without those that tell of no trouble. A program that is
    started again and again says the same again and again: that is told once.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_BYTES))
            lines = file.read(_MOST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    words = dict.fromkeys(word for line in lines if (word := _plain(_message(line))))
    return " | ".join([*words][-_LINES:])


def _message(line: str) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict):
        return line
    return "" if record.get("level") in _NO_WORDS else str(record.get("message", line))


def _plain(line: str) -> str:
    return "".join(letter for letter in line if letter.isprintable())[:_MOST_LETTERS].strip()
