"""The end of a log: as bytes to keep, and on one line as a reason.

Called by `claim_folders`, `carry_out` and `zygote_start`.
"""

from pathlib import Path

_LAST_LINES = 10
_TAIL_BYTES = 8192
_LINE_LENGTH = 400


def last_lines(log: Path, *, since: int = 0) -> str:
    """The end of a log on one line, for a reason; "" if it says nothing.

    Args:
        log: The log; it may be missing.
        since: How many bytes at its beginning are another process's.
    """
    try:
        end = tail(log, _TAIL_BYTES, since=since)
    except OSError:
        return ""
    lines = [_plain(line) for line in end.decode(errors="replace").splitlines()]
    return " | ".join(line for line in lines[-_LAST_LINES:] if line)


def tail(log: Path, most_bytes: int, *, since: int = 0) -> bytes:
    """The last bytes of a log.

    Raises:
        OSError: If it cannot be read.
    """
    with log.open("rb") as file:
        size = log.stat().st_size
        # One that was cut meanwhile holds nothing any more of what was there before.
        file.seek(max(since if since <= size else 0, size - most_bytes))
        return file.read(most_bytes)


def _plain(line: str) -> str:
    return "".join(letter for letter in line if letter.isprintable())[:_LINE_LENGTH].strip()
