"""When a person last had a kernel do something, from what it says on its broadcast channel.

Pure; called by `kernels`. Every answer there names the request it belongs to, so what counts is
told apart by the request's type:

- `execute_request` counts from the moment its code is shown to all (`execute_input`), which a
  silent one never is: variable inspectors, completers and the like run silently.
- `comm_msg` counts: a person moved a widget, and its callback may be hours of work.
- All else does not: kernel_info, comm_info, comm_open, complete, inspect, is_complete, history and
  debug are what Lab asks by itself. An answer to `input()` comes while its cell is busy anyway.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum


class Said(StrEnum):
    """What a kernel said that matters here."""

    BUSY = "busy"
    IDLE = "idle"
    SHOWN = "shown"
    """The code that it now runs."""


class Cause(StrEnum):
    """The type of the request that it was about."""

    CODE = "execute_request"
    WIDGET = "comm_msg"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class KernelSample:
    """One thing a kernel said.

    Attributes:
        request: The id of the request that it was about.
    """

    at: datetime
    said: Said
    cause: Cause
    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a person has had a kernel do.

    Attributes:
        under_way: Requests of a person that are not finished.
        unshown: Code whose beginning was heard, but that was not shown: silent as far as known.
        quiet_since: The end of the last one, or when the kernel came up.
    """

    under_way: frozenset[str] = frozenset()
    unshown: frozenset[str] = frozenset()
    quiet_since: datetime

    @property
    def is_busy(self) -> bool:
        """Whether a person's request is under way."""
        return bool(self.under_way)


def after(work: Work, sample: KernelSample) -> Work:
    """What is known once the kernel has said this as well."""
    request = frozenset({sample.request})
    match sample.said, sample.cause:
        case (Said.SHOWN, _) | (Said.BUSY, Cause.WIDGET):
            return replace(work, under_way=work.under_way | request, unshown=work.unshown - request)
        case Said.BUSY, Cause.CODE:
            return replace(work, unshown=work.unshown | request)
        case Said.IDLE, Cause.CODE | Cause.WIDGET:
            return _finished(work, sample, request)
        case _:
            return work


def restarted(at: datetime) -> Work:
    """What is known of a kernel that has just come up: a person has seen to that."""
    return Work(quiet_since=at)


def _finished(work: Work, sample: KernelSample, request: frozenset[str]) -> Work:
    if request <= work.unshown:
        return replace(work, unshown=work.unshown - request)
    # Its beginning may not have been heard; then it is taken for a person's, to be safe.
    return replace(work, under_way=work.under_way - request, quiet_since=sample.at)
