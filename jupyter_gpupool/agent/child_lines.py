"""Reads what a child says, which may be anything: a user's code runs in that process. Pure.

Called by `child_socket`. A line becomes one of three classes with the types they promise, or is
refused.
"""

from dataclasses import fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from jupyter_gpupool.protocol.launch import Hello, SchedulerState, WorkerState, decode

ChildLine = Hello | SchedulerState | WorkerState
_MOST_TEXT = 4096
_HIGHEST_PORT = 65535


def read_line(line: bytes) -> ChildLine:
    """Read one line of a child.

    Raises:
        ValueError: If it is no such line, or a value is not of the type it should be.
    """
    try:
        message = decode(line)
    except (RecursionError, UnicodeDecodeError) as error:
        raise ValueError("not a line of the launch protocol") from error
    if not isinstance(message, Hello | SchedulerState | WorkerState):
        raise ValueError(f"a child does not say {type(message).__name__}")  # noqa: TRY004 - its text is wrong, not its type
    hints = get_type_hints(type(message))
    for field in fields(message):
        if not _fits(getattr(message, field.name), hints[field.name]):
            raise ValueError(f"{type(message).__name__}.{field.name} is not what it should be")
    return message


def _fits(value: Any, wanted: Any) -> bool:
    origin = get_origin(wanted)
    if origin in (UnionType, Union):
        return any(_fits(value, each) for each in get_args(wanted))
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(each, get_args(wanted)[0]) for each in value)
    if isinstance(value, bool) and wanted is not bool:
        return False
    if isinstance(value, str) and not _can_be_passed_on(value):
        return False
    if isinstance(value, int) and not 0 <= value <= _HIGHEST_PORT:
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
