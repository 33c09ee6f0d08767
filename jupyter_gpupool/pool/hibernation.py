"""What a claim knows of its own hibernation: from the wish for it until its results are back."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from .idle_rule import Otherwise

KEPT_RESULTS: Final = "kept-results"
"""The rule by which a claim is told how long its results are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HibernationTerms:
    """What the policy says of it.

    Attributes:
        keep_s: For so long a claim may hibernate; then it ends.
        quota_bytes: Results a claim may keep.
        memory_bytes: Of these, what may be in its scheduler's host's memory at first: devices
            are free sooner by that. When nothing moves any more, all but the small ones go to
            that host's disk.
        host_bytes: Results that all claims together may keep on one host; None is without bound.
        user_bytes: The same of all claims of one user, on whatever hosts.
        resumes_itself: Whether a task that is submitted meanwhile has it resumed.
    """

    keep_s: float = 7 * 86_400.0
    quota_bytes: int = 64 * 2**30
    memory_bytes: int = 2**30
    resumes_itself: bool = True
    host_bytes: int | None = None
    user_bytes: int | None = None

    @property
    def is_shared(self) -> bool:
        """Whether what one claim keeps leaves less for others."""
        return self.host_bytes is not None or self.user_bytes is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hibernation:
    """One hibernation of one claim.

    Attributes:
        asked_at: When it was asked for.
        otherwise: What becomes of the claim if its results cannot be kept.
        resumes: It waits for devices again as soon as they are kept: it was at work.
        only_asked: It resumes only when its user asks: they had it stop waiting, or it could not
            be started.
        kept_at: Since when they are kept; None while they are on their way.
        keep_until: Until when they are kept while it does not wait for devices.
        results: How many are kept.
        result_bytes: What they take.
        left: What was left of the claim's time then: its clock stands still meanwhile.
        again: Results lost since then that are computed again.
        gone: Results lost since then that nobody can compute again.
        unread: Results that no worker could read when the others came back: they stay kept.
        scaled: Its user scaled it to no workers: scaling it up resumes it.
        room_bytes: What its results were given room for, where claims share it; else None.
    """

    asked_at: datetime
    otherwise: Otherwise = Otherwise.LEAVE
    resumes: bool = False
    only_asked: bool = False
    kept_at: datetime | None = None
    keep_until: datetime | None = None
    results: int = 0
    result_bytes: int = 0
    left: timedelta | None = None
    again: int = 0
    gone: int = 0
    unread: int = 0
    scaled: bool = False
    room_bytes: int | None = None
