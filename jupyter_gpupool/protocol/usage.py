"""What was held, used, left idle and won back.

Route: GET /api/v1/usage → UsageView; users see their own, leads their queues', admins everybody's.
"""

from datetime import date, datetime
from enum import StrEnum

from .bodies import View

MOST_DAYS = 400
"""So long days are kept."""


class UsageBy(StrEnum):
    """What a row of the report is about."""

    USER = "user"
    QUEUE = "queue"
    DAY = "day"


class UsedView(View):
    """Device-hours; `held` is the sum of `busy`, `idle` and `unknown`.

    Attributes:
        idle: Known to be unused.
        unknown: Nobody could tell: while a claim starts, or its host is silent.
        won_back: Given to others by rules on idle claims: an estimate, not a part of `held`.
    """

    held: float = 0.0
    busy: float = 0.0
    idle: float = 0.0
    unknown: float = 0.0
    won_back: float = 0.0


class UsageRowView(UsedView):
    """One row; what it is not about is None."""

    user: str | None = None
    queue: str | None = None
    day: date | None = None


class UsageView(View):
    """The report.

    Attributes:
        since, until: The first moment of its first day, and now.
        zone: Whose midnights are between its days.
        by: What a row is about.
        whole_pool: Whether it is of everybody, not of those alone whom the caller may see.
    """

    since: datetime
    until: datetime
    zone: str
    by: tuple[UsageBy, ...]
    whole_pool: bool
    rows: tuple[UsageRowView, ...] = ()
    total: UsedView = UsedView()
