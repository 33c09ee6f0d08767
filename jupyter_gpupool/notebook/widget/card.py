"""What a claim's card holds: plain values, in one language, for a browser to draw.

Made by `card_model`, sent by `widget`, drawn by `static/card.js`, which knows nothing of claims.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from .text import Text
from .words import Language, Units


class Look(StrEnum):
    """A claim's state as it is seen: the name of its icon."""

    WAITING = "waiting"
    CHANGING = "changing"
    RUNNING = "running"
    WARNED = "warned"
    HIBERNATED = "hibernated"
    RELEASED = "released"
    EXPIRED = "expired"
    RECLAIMED = "reclaimed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Act(StrEnum):
    """What a press asks the kernel to do."""

    CANCEL = "cancel"
    RELEASE = "release"
    SCALE = "scale"
    KEEP = "keep"
    HIBERNATE = "hibernate"
    RESUME = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """What is asked before an act that loses something, or that needs a reason.

    Attributes:
        reason: Name of the field in which the reason is given; "" if there is none.
    """

    question: str
    yes: str
    no: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """One act, said beforehand.

    Attributes:
        title: What will happen, or why it cannot.
        is_primary: The one most wanted; at most one a card.
        is_quiet: Without a fill.
        is_off: Shown, but cannot be pressed.
    """

    act: Act
    label: str
    title: str
    is_primary: bool = False
    is_quiet: bool = False
    is_off: bool = False
    confirm: Confirm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A captioned value of a claim that waits."""

    caption: str
    value: Text
    note: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A sentence of the body."""

    text: Text
    is_dim: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """One lease: where, what, how much memory, how it is."""

    place: str
    model: str
    memory: str
    state: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What goes back, when, and by which rule."""

    what: Text
    when: Text
    why: Text
    buttons: tuple[Button, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepper:
    """How many workers are wanted, with what fewer and more would do."""

    caption: str
    wanted: int
    granted: str
    fewer: str
    fewer_title: str
    more: str
    more_title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Everything that is drawn of one claim.

    Attributes:
        label: For those who hear the card instead of seeing it.
        is_old: Nothing new can be heard of it now: it must not look live.
        as_of: When all this was true.
        dashboards: Label of the link; "" if there is none.
        gone, busy: Said by the browser when the kernel is gone, or slow to answer.
    """

    claim: str
    language: Language
    look: Look
    name: str
    label: str
    state: Text
    as_of: datetime
    is_old: bool
    note: Text
    figures: tuple[Figure, ...]
    devices: tuple[DeviceRow, ...]
    lines: tuple[Line, ...]
    notice: Notice | None
    head: tuple[Button, ...]
    stepper: Stepper | None
    foot: tuple[Button, ...]
    dashboards: str
    units: Units
    gone: Text
    busy: str
