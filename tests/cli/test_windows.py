"""Moments as people write them, read in a zone that is known."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from jupyter_gpupool.cli.windows import begins_at, ends_at, in_words, zone_named
from jupyter_gpupool.pool.errors import BadRequest

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 30, 11, 0, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("tue 10:00", "2026-12-01T10:00+01:00"),
        ("Tuesday 10:00", "2026-12-01T10:00+01:00"),
        ("mon 12:00", "2026-11-30T12:00+01:00"),
        ("mon 10:00", "2026-12-07T10:00+01:00"),
        ("14:00", "2026-11-30T14:00+01:00"),
        ("10:00", "2026-12-01T10:00+01:00"),
        ("tomorrow 9:30", "2026-12-01T09:30+01:00"),
        ("2026-12-24 10:00", "2026-12-24T10:00+01:00"),
        ("2027-07-01T10:00", "2027-07-01T10:00+02:00"),
        ("2026-12-24T10:00+05:30", "2026-12-24T10:00+05:30"),
        ("2026-12-24T10:00Z", "2026-12-24T10:00+00:00"),
        ("now", "2026-11-30T11:00+01:00"),
    ],
)
def test_moment_is_the_next_such_one(text, read):
    """A day of the week, a time alone, a date: in the zone, summer time included."""
    assert begins_at(text, MONDAY, BERLIN) == datetime.fromisoformat(read)


@pytest.mark.parametrize(
    ("text", "hours"), [("12:00", 2), ("2h", 2), ("90min", 1.5), ("9:00", 23), ("wed 10:00", 24)]
)
def test_window_closes_after_it_opens(text, hours):
    """A time that is earlier on the clock is the next day's."""
    begins = datetime(2026, 12, 1, 10, 0, tzinfo=BERLIN)
    assert ends_at(text, begins, BERLIN) - begins == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tue", "is no moment"),
        ("25:00", "is no moment"),
        ("10:5", "is no moment"),
        ("noday 10:00", "is no day"),
        ("tu 10:00", "is no day"),
        ("2026-12-24", "names no time of day"),
        ("2026-13-24 10:00", "is no day"),
        ("", "is no moment"),
        ("2027-03-28 02:30", "skip 2027-03-28 02:30"),
        ("2026-10-25 02:30", "twice"),
    ],
)
def test_what_is_no_single_moment_is_refused(text, told):
    """Nonsense, and what clocks skip or show twice."""
    with pytest.raises(BadRequest, match=told) as refused:
        begins_at(text, MONDAY, BERLIN)
    assert refused.value.field == "from"


def test_time_shown_twice_is_offered_with_its_offset():
    """Which can be written down."""
    with pytest.raises(BadRequest) as refused:
        begins_at("2026-10-25 02:30", MONDAY, BERLIN)
    assert "2026-10-25T02:30+02:00" in refused.value.hint


def test_window_is_told_with_its_zone():
    """However it was stored."""
    begins = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
    told = in_words(begins, begins + timedelta(hours=2), BERLIN)
    assert told == "Tue 2026-12-01 10:00 to 12:00 CET (UTC+01:00)"
    assert "to Wed 2026-12-02 10:00" in in_words(begins, begins + timedelta(days=1), BERLIN)


@pytest.mark.parametrize("name", ["Nowhere/Town", "../etc/passwd", "", "Europe"])
def test_unknown_zone_is_refused(name):
    """With one that there is."""
    with pytest.raises(BadRequest, match="no time zone"):
        zone_named(name)
