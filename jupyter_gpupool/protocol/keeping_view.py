"""What a claim's people are shown of its results while they are kept, or might be."""

from datetime import datetime

from pydantic import Field

from .bodies import View
from .keeping import UnkeptReason


class UnkeptView(View):
    """One result that cannot be kept, by Dask's key, and why."""

    key: str
    reason: UnkeptReason
    nbytes: int = 0
    detail: str = ""


class KeepingView(View):
    """A claim's results: asked about when it is warned, moved when it hibernates, then kept.

    Attributes:
        surveyed: It is known which could be kept; so it is once the claim is warned.
        results: How many finished results there are, as far as that is known.
        held: Of these, how many are kept without a device by now.
        unkept: The first of those that cannot be kept; `unkept_count` is how many there are.
        kept_since: Since when all are kept.
        again: Results lost since then that are computed again; `gone`, those that cannot be.
    """

    surveyed: bool = False
    results: int = 0
    result_bytes: int = 0
    held: int = 0
    held_bytes: int = 0
    unkept: tuple[UnkeptView, ...] = Field(default=())
    unkept_count: int = 0
    kept_since: datetime | None = None
    again: int = 0
    gone: int = 0
    problem: str = ""
