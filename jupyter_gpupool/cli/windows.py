"""Moments as people write them, "tue 10:00" or "12:00", in a time zone that is always known: pure.

Used by `reservations`. What a zone's clocks skip, or show twice, is refused instead of guessed.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.units import parse_duration

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORTEST = 3
_WEEK = 7
_HINT = 'Write for example "tue 10:00", "tomorrow 9:30", "2026-12-24 10:00" or "14:00".'


def zone_named(name: str | None) -> tzinfo | None:
    """The zone of that name; None, for no name, is this machine's.

    Raises:
        BadRequest: If there is none.
    """
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRequest(
            f"There is no time zone {name[:80]!r}.",
            field="time_zone",
            hint='Write for example "Europe/Berlin" or "UTC".',
        ) from error


def begins_at(text: str, now: datetime, zone: tzinfo | None) -> datetime:
    """When a window opens: the first such moment that is ahead.

    Raises:
        BadRequest: If it is none.
    """
    if text.strip().lower() == "now":
        return now
    return _read(text, now, zone, "from")


def ends_at(text: str, begins: datetime, zone: tzinfo | None) -> datetime:
    """When a window closes: the first such moment after it opens, or so long after, as "2h".

    Raises:
        BadRequest: If it is neither.
    """
    if text.strip()[-1:].isalpha():
        return begins + parse_duration(text, field="until")
    return _read(text, begins, zone, "until")


def in_words(begins: datetime, ends: datetime, zone: tzinfo | None) -> str:
    """A window with its zone: "Tue 2026-12-01 10:00 to 12:00 CET (UTC+01:00)"."""
    start, end = begins.astimezone(zone), ends.astimezone(zone)
    until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%a %Y-%m-%d %H:%M}"
    offset = f"{end:%z}"
    named = f"{end.tzname()} (UTC{offset[:3]}:{offset[3:5]})"
    return f"{start:%a %Y-%m-%d %H:%M} to {until} {named}"


def _read(text: str, after: datetime, zone: tzinfo | None, field: str) -> datetime:
    words = text.strip().lower()
    try:
        said = datetime.fromisoformat(words.upper())
    except ValueError:
        return _clock(words, after, zone, field)
    if ":" not in words:
        raise BadRequest(f"{text!r} names no time of day.", field=field, hint=_HINT)
    return said if said.tzinfo is not None else _placed(said, zone, field)


def _clock(words: str, after: datetime, zone: tzinfo | None, field: str) -> datetime:
    """A day and a time of it, or a time alone: the first one after a moment."""
    day, _, time = words.rpartition(" ")
    hours, _, minutes = time.partition(":")
    is_time = hours.isdecimal() and minutes.isdecimal() and len(minutes) == 2  # noqa: PLR2004 - MM
    if not is_time or not (int(hours) < 24 and int(minutes) < 60):  # noqa: PLR2004 - of a clock
        raise BadRequest(f"{words[:80]!r} is no moment.", field=field, hint=_HINT)
    local = after.astimezone(zone).replace(tzinfo=None)
    ahead, step = _days_ahead(day.strip(), local, field)
    wanted = local.replace(hour=int(hours), minute=int(minutes), second=0, microsecond=0)
    wanted += timedelta(days=ahead)
    if wanted <= local:
        wanted += timedelta(days=step)
    return _placed(wanted, zone, field)


def _days_ahead(day: str, local: datetime, field: str) -> tuple[int, int]:
    """How many days ahead a day is, and after how many it comes again; 0 if it does not."""
    if day in ("", "today"):
        return 0, 0 if day else 1
    if day == "tomorrow":
        return 1, 0
    fitting = [n for n, name in enumerate(_DAYS) if len(day) >= _SHORTEST and name.startswith(day)]
    if not fitting:
        raise BadRequest(f"{day[:80]!r} is no day.", field=field, hint=_HINT)
    return (fitting[0] - local.weekday()) % _WEEK, _WEEK


def _placed(naive: datetime, zone: tzinfo | None, field: str) -> datetime:
    """A wall clock's time in a zone, if its clocks show it exactly once."""
    first, second = (_in_zone(naive.replace(fold=fold), zone) for fold in (0, 1))
    # Through UTC and back, a time that clocks skip comes out as another one.
    shown = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0)
    said = f"{naive:%Y-%m-%d %H:%M}"
    if shown != naive.replace(fold=0):
        raise BadRequest(f"Clocks there skip {said}.", field=field, hint="Choose another time.")
    if first.utcoffset() != second.utcoffset():
        raise BadRequest(
            f"Clocks there show {said} twice.",
            field=field,
            hint=f"Write the offset too: {first.isoformat(timespec='minutes')}.",
        )
    return first


def _in_zone(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
