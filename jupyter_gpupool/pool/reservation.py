"""A reservation: devices booked for a queue in a time window, by an admin or a lead of it."""

from dataclasses import dataclass
from datetime import datetime

from .ids import UserName


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Devices for one queue in one window.

    Attributes:
        devices: Whole ones, of any model; those that the queue is guaranteed are among them.
        begins: When the window opens.
        ends: When it closes.
        by: Who booked it.
        note: What for, in their words; "" if they said nothing.
    """

    id: str
    queue: str
    devices: int
    begins: datetime
    ends: datetime
    by: UserName
    note: str = ""

    def is_open(self, now: datetime) -> bool:
        """Whether the window is open at a moment."""
        return self.begins <= now < self.ends
