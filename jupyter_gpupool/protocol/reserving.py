"""What is said of reservations: devices booked for a queue in a time window.

Routes, all under /api/v1:

    POST   /reservations        ReserveBody → ReservationView    admin, a lead of the queue
    GET    /reservations        → [ReservationView]              user
    DELETE /reservations/{id}   → 204                            admin, a lead of the queue
"""

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, Field

from jupyter_gpupool.pool.ids import UserName

from .bodies import Body, View, Words


class ReserveBody(Body):
    """Devices to book, those that the queue is guaranteed among them.

    Both times name their offset from UTC.
    """

    queue: Words
    devices: Annotated[int, Field(gt=0, le=1_000_000, strict=True)]
    begins: AwareDatetime
    ends: AwareDatetime
    note: Words = ""


class ReservationView(View):
    """Devices that are booked.

    Attributes:
        is_open: Its window is open now: its queue is guaranteed these devices.
        held: How many devices its queue, and those below, hold now.
    """

    id: str
    queue: str
    devices: int
    begins: datetime
    ends: datetime
    by: UserName
    note: str = ""
    is_open: bool = False
    held: int = 0
