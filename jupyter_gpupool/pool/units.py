"""Sizes and times that people write, as numbers that code can use; nonsense is refused here.

Called where a user's words enter: the claim's terms, configuration, the command line.
"""

import operator
import re
from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum

from .errors import BadRequest

_BYTES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "t": 2**40,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_MAX_DURATION = timedelta(days=3660)
_SHORTEST_S = 1e-6
_MAX_BYTES = 2**60
_MOST_NAMED = 5


def parse_bytes(text: str | int, *, field: str = "") -> int:
    """Read a size such as "10GiB", "10 GB" or a plain number of bytes.

    Raises:
        BadRequest: If it is not a size, not above zero, or above an exbibyte.
    """
    amount = _parse(str(text), _BYTES)
    if amount is None or not 1 <= amount <= _MAX_BYTES:
        raise BadRequest(f"{text!r} is not a size.", field=field, hint='Write for example "10GiB".')
    return int(amount)


def absolute_bytes(size: str | None) -> int | None:
    """Bytes of a size as dask-cuda takes it; None without one, or if it is a fraction as "0.5" is.

    Raises:
        BadRequest: If it is no size.
    """
    if size is None:
        return None
    try:
        value = float(size)
    except ValueError:
        return parse_bytes(size)
    # "1" is a byte, "1.0" the whole device: so dask-cuda has it.
    return None if "." in size and 0.0 < value <= 1.0 else int(value)


def parse_duration(text: str | float | timedelta, *, field: str = "") -> timedelta:
    """Read a time such as "90", "90s", "20 min", "2h", "1d"; a plain number is seconds.

    Raises:
        BadRequest: If it is not a time, not above zero, or above ten years.
    """
    seconds = _seconds(text)
    if seconds is None or not seconds >= _SHORTEST_S:
        raise BadRequest(
            f"{text!r} is not a time above zero.", field=field, hint='Write for example "2h".'
        )
    if seconds > _MAX_DURATION.total_seconds():
        raise BadRequest(
            f"{text!r} is longer than ten years.", field=field, hint='Write for example "2h".'
        )
    return timedelta(seconds=seconds)


def _seconds(text: str | float | timedelta) -> float | None:
    if isinstance(text, timedelta):
        return text.total_seconds()
    if isinstance(text, float):
        # Its digits may be none that people write, such as 1e+300.
        return float(text)
    return _parse(str(text), _SECONDS)


def as_count(number: object) -> int | None:
    """A whole number of any type that counts, as numpy's do; None for what is none, or a bool."""
    if isinstance(number, bool):
        return None
    try:
        return operator.index(number)  # type: ignore[arg-type] # what it is, is the question
    except TypeError:
        return None


def format_bytes(amount: int) -> str:
    """Write a size as people read it: "512 MiB", "79.6 GiB"."""
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:  # noqa: PLR2004 - the step of the unit itself
            # Three digits; "g" alone would turn 1023.5 into 1.02e+03.
            return f"{value:.3g} {unit}" if abs(value) < 100 else f"{value:.0f} {unit}"  # noqa: PLR2004
        value /= 1024
    return f"{value:.1f} TiB"


class TimeUnit(StrEnum):
    """The units that spans of time are told in, as English writes them."""

    SECOND = "s"
    MINUTE = "min"
    HOUR = "h"
    DAY = "d"


_TOLD_IN: tuple[tuple[int, TimeUnit, TimeUnit | None], ...] = (
    (86400, TimeUnit.DAY, TimeUnit.HOUR),
    (3600, TimeUnit.HOUR, TimeUnit.MINUTE),
    (300, TimeUnit.MINUTE, None),
    (60, TimeUnit.MINUTE, TimeUnit.SECOND),
    (0, TimeUnit.SECOND, None),
)
"""From how many seconds on a time is told in which unit, and what is left of it in which."""


def told_units(span_s: float) -> tuple[tuple[int, TimeUnit], ...]:
    """How a time is told in any language: in one unit or two, the largest first.

    Seconds count below five minutes and minutes below a day, for so long they matter to whoever
    reads it. What is left over is dropped, and so is a second unit of 0; nothing is negative.
    """
    seconds = max(0, round(span_s))
    large, small = next((large, small) for from_s, large, small in _TOLD_IN if seconds >= from_s)
    count, rest_s = divmod(seconds, _SECONDS[large])
    more = rest_s // _SECONDS[small] if small else 0
    return ((count, large), (more, small)) if small and more else ((count, large),)


def format_duration(duration: timedelta | float) -> str:
    """Write a time, or seconds: "45 s", "1 min 5 s", "12 min", "3 h 05 min", "2 h", "2 d 4 h"."""
    span_s = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if 0.1 <= span_s < 0.95:  # noqa: PLR2004 - what one decimal can tell from none and from a whole
        return f"{span_s:.1f} s"
    (count, unit), *rest = told_units(span_s)
    digits = {TimeUnit.MINUTE: "02d"}
    more = (f" {number:{digits.get(small, 'd')}} {small}" for number, small in rest)
    return f"{count} {unit}" + "".join(more)


def plural(count: int, noun: str) -> str:
    """Write a count with its noun: "1 device", "2 devices"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def some_of(names: Iterable[str]) -> str:
    """The first few of these names, in order and each once; "…" stands for the others."""
    every = sorted(set(names))
    return ", ".join([*every[:_MOST_NAMED], *(["…"] if len(every) > _MOST_NAMED else [])])


def _parse(text: str, factors: dict[str, int]) -> float | None:
    match = _SIZE.fullmatch(text)
    if match is None or match[2].lower() not in factors:
        return None
    return float(match[1]) * factors[match[2].lower()]
