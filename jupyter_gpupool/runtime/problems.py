"""Why a scheduler or worker cannot start, or had to end: sentences for its log, codes for its exit.

Raised and returned within `runtime`; the agent sees the exit code and the log's last lines.
"""

from enum import IntEnum


class CannotStart(Exception):
    """It cannot start as it was asked to; the message is a sentence for a user."""


class ExitCode(IntEnum):
    """How a process ended. Only GOOD is no failure: the agent may fork the worker again at once."""

    GOOD = 0
    FAILED = 1
    SCHEDULER_GONE = 3
    UNKNOWN_TO_AGENT = 4
