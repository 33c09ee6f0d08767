"""Sentences with times in them, which only the reader's browser can write: pure.

Made by `card_model` from the templates of `words`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from string import Formatter


class Form(StrEnum):
    """How a moment is written."""

    CLOCK = "clock"
    """14:20, with the day if it is another one."""
    AGE = "age"
    """Time since then: 1 h 12 min."""
    LEFT = "left"
    """Time until then: in 4 min."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A time within a text."""

    at: datetime
    form: Form


Text = tuple[str | Moment, ...]
"""Words and moments in reading order."""


def text(template: str, **values: str | int | datetime | None) -> Text:
    """Fill a template in; a field named for a form ("clock", "age", "left") takes a time."""
    parts: list[str | Moment] = []
    for literal, field, _spec, _conversion in Formatter().parse(template):
        parts.append(literal)
        if field is not None:
            parts.append(_part(field, values))
    return tuple(part for part in parts if part != "")


def joined(*texts: Text, by: str) -> Text:
    """Several texts as one, without those that are empty."""
    said = [one for one in texts if one]
    parts = [part for one in said for part in (by, *one)]
    return tuple(parts[1:])


def _part(field: str, values: Mapping[str, str | int | datetime | None]) -> str | Moment:
    value = values[field]
    if isinstance(value, datetime):
        return Moment(at=value, form=Form(field))
    return str(value)
