"""What a scheduler is told to do with its claim's results, and what it says of them.

Standard library only: `runtime` reads it inside any Python environment. Carried by `launch.Orders`
and `launch.SchedulerState`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

HOLDER_NAME = "gpupool-holder"
"""The holder's name on its scheduler; no lease is called so."""
MOST_UNKEPT_TOLD = 20
_LONGEST_TEXT = 500
"""Keys and errors are a user's own, and may be of any length; they are passed on to everybody."""


class Wish(StrEnum):
    """What a scheduler should do with the claim's results."""

    AWAKE = "awake"
    """Have them on workers."""
    SURVEYED = "surveyed"
    """Have them on workers, and say which could not be kept."""
    HIBERNATED = "hibernated"
    """Hand them to the holder and let every worker go."""


class KeepPhase(StrEnum):
    """Where the results are."""

    AWAKE = "awake"
    HIBERNATING = "hibernating"
    """On their way to the holder. Until the last one has arrived, the workers keep them all."""
    HIBERNATED = "hibernated"
    """With the holder; there are no workers."""
    RESUMING = "resuming"
    """On their way back. What has not arrived yet is with the holder; it ends in `AWAKE`, where
    what no worker could read stays with it."""
    REFUSED = "refused"
    """On workers still: some cannot be kept, and nothing was done. Another wish ends this."""
    LOST = "lost"
    """The holder ended and took them along."""


class UnkeptReason(StrEnum):
    """Why a result cannot be kept."""

    ACTOR = "actor"
    """It lives in its worker and cannot move."""
    UNWRITABLE = "unwritable"
    """It cannot be serialised."""
    UNREADABLE = "unreadable"
    """It can be serialised, but nothing can be made of that again."""
    TOO_LARGE = "too-large"
    """All results together take more than the claim may keep."""
    NO_ROOM = "no-room"
    """The holder could not store it: its disk is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unkept:
    """One result that cannot be kept.

    Attributes:
        key: Dask's key, as text.
        detail: The error, in a line; "" if the reason says all.
    """

    key: str
    reason: UnkeptReason
    nbytes: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What became of a scheduler's wish.

    Attributes:
        wish: The one that this answers.
        surveyed: Whether `results`, `result_bytes` and `unkept` are known for this wish.
        results: Finished results the claim has.
        result_bytes: What they take when serialised.
        held: Of these, how many are with the holder.
        held_bytes: What the holder keeps of them, in memory and on its disk.
        unkept: The first of those that cannot be kept, at most `MOST_UNKEPT_TOLD`.
        unkept_count: How many there are.
        again: Results that were lost and are computed again.
        gone: Results that were lost and cannot be computed again: they were sent, not computed.
        unread: Results that stay with the holder, for no worker could read them or take them back.
            Which these are, `unkept` says as long as nothing else is asked.
        wanted: Tasks were submitted since it was told to hibernate.
        problem: A sentence when something went wrong; "" while all is well.
    """

    phase: KeepPhase = KeepPhase.AWAKE
    wish: Wish = Wish.AWAKE
    surveyed: bool = False
    results: int = 0
    result_bytes: int = 0
    held: int = 0
    held_bytes: int = 0
    unkept: tuple[Unkept, ...] = ()
    unkept_count: int = 0
    again: int = 0
    gone: int = 0
    unread: int = 0
    wanted: bool = False
    problem: str = ""


def keeping_of(values: Mapping[str, Any]) -> Keeping:
    """Read it back from JSON's types, cut to what is worth passing on.

    Raises:
        KeyError, TypeError, ValueError: If it is none.
    """
    known = {key: value for key, value in values.items() if key in Keeping.__slots__}
    return Keeping(
        **known
        | {
            "phase": KeepPhase(values.get("phase", KeepPhase.AWAKE)),
            "wish": Wish(values.get("wish", Wish.AWAKE)),
            "unkept": tuple(map(_unkept_of, values.get("unkept", ())[:MOST_UNKEPT_TOLD])),
            "problem": _cut(values.get("problem", "")),
        }
    )


def _unkept_of(values: Mapping[str, Any]) -> Unkept:
    known = {key: value for key, value in values.items() if key in Unkept.__slots__}
    return Unkept(
        **known
        | {
            "key": _cut(values["key"]),
            "reason": UnkeptReason(values["reason"]),
            "detail": _cut(values.get("detail", "")),
        }
    )


def _cut(text: str) -> str:
    """Neither half a surrogate nor a zero in a key may keep its scheduler from being heard."""
    return text[:_LONGEST_TEXT].replace("\0", "?").encode(errors="replace").decode()
