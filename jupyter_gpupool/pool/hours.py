"""Hours of the week in a named time zone, as a rule of the policy says them.

A pure question of a moment: what the zone's clocks show then. When clocks go back, both passes of
the hour count; an hour that is left out in spring counts nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from .errors import BadRequest

DAY_MIN: Final = 24 * 60
"""Minutes of a day by its clock, whatever the sun does."""


class Day(StrEnum):
    """A day of the week."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


_DAYS: Final = tuple(Day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """From one time of day until another, on some days, in a zone.

    Attributes:
        begin_min, end_min: Minutes after midnight by the zone's clocks. An end that is not after
            the beginning is one of the next day.
        days: On which they begin.

    Raises:
        BadRequest: If they can never hold, or are no times of a day.
    """

    zone: ZoneInfo
    begin_min: int = 0
    end_min: int = DAY_MIN
    days: frozenset[Day] = frozenset(Day)

    def __post_init__(self) -> None:
        if not 0 <= self.begin_min < DAY_MIN or not 0 <= self.end_min <= DAY_MIN:
            raise BadRequest("It has no such time of day.", field="hours")
        if self.begin_min == self.end_min:
            raise BadRequest(
                "It begins when it ends.", field="hours", hint="Leave hours out for the whole day."
            )
        if not self.days:
            raise BadRequest("It names no day.", field="days", hint="Leave days out for all.")

    def hold_at(self, moment: datetime) -> bool:
        """Whether an aware moment lies within them."""
        local = moment.astimezone(self.zone)
        minute, today = local.hour * 60 + local.minute, local.weekday()
        if self.begin_min < self.end_min:
            return self.begin_min <= minute < self.end_min and _DAYS[today] in self.days
        if minute >= self.begin_min:
            return _DAYS[today] in self.days
        return minute < self.end_min and _DAYS[today - 1] in self.days
