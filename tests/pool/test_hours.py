"""Hours of a rule: what a zone's clocks show decides, also on the days on which they change."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.hours import DAY_MIN, Day, Hours

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = Hours(zone=BERLIN, begin_min=20 * 60, end_min=6 * 60)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "holds"),
    [
        ("2026-01-15T18:59", False),
        ("2026-01-15T19:00", True),
        ("2026-01-16T04:59", True),
        ("2026-01-16T05:00", False),
        ("2026-07-15T17:59", False),
        ("2026-07-15T18:00", True),
        ("2026-07-16T03:59", True),
        ("2026-07-16T04:00", False),
    ],
)
def test_hours_are_those_of_the_zone_in_summer_and_winter(moment, holds):
    """Twenty to six in Berlin is one hour earlier by universal time in summer."""
    assert NIGHT.hold_at(_utc(moment)) is holds


def test_an_hour_that_comes_twice_counts_twice():
    """When clocks go back at three, both passes from two to three are two o'clock."""
    two = Hours(zone=BERLIN, begin_min=120, end_min=180)
    held = [minute for minute in range(24 * 60) if two.hold_at(_at("2026-10-25", minute))]
    assert held == list(range(120))


def test_an_hour_that_is_left_out_never_holds():
    """When clocks go forth at two, nothing of that night is two o'clock."""
    two = Hours(zone=BERLIN, begin_min=120, end_min=180)
    assert not any(two.hold_at(_at("2026-03-29", minute)) for minute in range(24 * 60))


def test_a_night_belongs_to_the_day_on_which_it_begins():
    """Friday's night is still held on Saturday at five, and Saturday's is not."""
    friday = Hours(zone=BERLIN, begin_min=20 * 60, end_min=6 * 60, days=frozenset({Day.FRI}))
    told = [friday.hold_at(_utc(f"2026-12-{day}T04:00")) for day in ("04", "05", "06")]
    assert told == [False, True, False]


def test_whole_days_follow_the_zones_midnight():
    """A Saturday in Tokyo begins while it is Friday by universal time."""
    saturday = Hours(zone=ZoneInfo("Asia/Tokyo"), days=frozenset({Day.SAT}))
    told = [saturday.hold_at(_utc(f"2026-12-{text}")) for text in ("04T14:59", "04T15:00")]
    assert told == [False, True]


@pytest.mark.parametrize(
    ("begin", "end", "days"),
    [(60, 60, Day), (0, DAY_MIN + 1, Day), (DAY_MIN, 60, Day), (0, 60, ())],
)
def test_hours_that_cannot_be_are_refused(begin, end, days):
    """Neither no time, nor a time no clock shows, nor no day."""
    with pytest.raises(BadRequest):
        Hours(zone=BERLIN, begin_min=begin, end_min=end, days=frozenset(days))


def _at(day: str, minute: int) -> datetime:
    """A minute of a day, counted by universal time from its midnight."""
    hours, minutes = divmod(minute, 60)
    return datetime.fromisoformat(f"{day}T{hours:02d}:{minutes:02d}").replace(tzinfo=UTC)
