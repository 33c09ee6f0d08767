"""Reads what a child says, which may be anything: a user's code runs in that process. Pure.

Called by `child_socket`. A line becomes one of four classes with the types they promise, or is
refused.
"""

import math
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from jupyter_gpupool.protocol.launch import Hello, Lively, SchedulerState, WorkerState, decode

ChildLine = Hello | Lively | SchedulerState | WorkerState
_MOST_TEXT = 4096
_HIGHEST_PORT = 65535
_MOST_COUNTED = 2**53
"""What a database and a browser can still count."""


def read_line(line: bytes) -> ChildLine:
    """Read one line of a child.

    Raises:
        ValueError: If it is no such line, or a value is not of the type it should be.
    """
    try:
        message = decode(line)
    except (RecursionError, UnicodeDecodeError) as error:
        raise ValueError("not a line of the launch protocol") from error
    if not isinstance(message, ChildLine):
        raise ValueError(f"a child does not say {type(message).__name__}")  # noqa: TRY004 - its text is wrong, not its type
    if (wrong := _misfit(message, _HIGHEST_PORT)) is not None:
        raise ValueError(f"{type(message).__name__}.{wrong} is not what it should be")
    return message


def _misfit(record: Any, highest: int) -> str | None:
    """The first field whose value is not of its type."""
    hints = get_type_hints(type(record))
    names = (field.name for field in fields(record))
    return next((n for n in names if not _fits(getattr(record, n), hints[n], highest)), None)


def _fits(value: Any, wanted: Any, highest: int) -> bool:
    origin = get_origin(wanted)
    if origin in (UnionType, Union):
        return any(_fits(value, each, highest) for each in get_args(wanted))
    if origin is tuple:
        inner = get_args(wanted)[0]
        return isinstance(value, tuple) and all(_fits(each, inner, highest) for each in value)
    if is_dataclass(wanted):
        # Only what is said of results and tasks is nested, and that is counts and bytes.
        return isinstance(value, wanted) and _misfit(value, _MOST_COUNTED) is None  # type: ignore[arg-type]  # a class, not an instance
    return _fits_plainly(value, wanted, highest)


def _fits_plainly(value: Any, wanted: Any, highest: int) -> bool:
    if isinstance(value, bool) and wanted is not bool:
        return False
    if isinstance(value, float) and not 0.0 <= value < math.inf:
        return False
    if isinstance(value, str) and not _can_be_passed_on(value):
        return False
    if isinstance(value, int) and not 0 <= value <= highest:
        return False
    return isinstance(value, wanted)


def _can_be_passed_on(text: str) -> bool:
    """Text ends in reports, records and databases; half a surrogate or a zero breaks those."""
    if len(text) > _MOST_TEXT or "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
