"""Segments of System V shared memory that dead processes of a claim have made.

Called by `leftovers`. The kernel says of each segment who made it, so these need no other sign. Of
message queues and semaphores it does not, and they are left alone.
"""

import ctypes
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_LISTED = Path("/proc/sysvipc/shm")
_REMOVE = 0  # IPC_RMID
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment.

    Attributes:
        maker: The pid of the process that made it.
        made_s: When, by the wall clock; when its owner or rights changed last, if they did.
        users: How many processes have it attached.
    """

    id: int
    maker: int
    owner: int
    made_s: float
    users: int

    def __str__(self) -> str:
        return f"System V shared memory {self.id}"


def segments() -> Iterator[Segment]:
    """All there are."""
    try:
        names, *lines = _LISTED.read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        said = dict(zip(names.split(), line.split(), strict=False))
        yield Segment(
            id=int(said["shmid"]),
            maker=int(said["cpid"]),
            owner=int(said["cuid"]),
            made_s=float(said["ctime"]),
            users=int(said["nattch"]),
        )


def left_by(pids: Collection[int], uid: int | None, since_s: float) -> tuple[Segment, ...]:
    """Those that these processes have made, who are dead, and that nobody has attached."""
    return tuple(
        each
        for each in segments()
        if each.maker in pids
        and each.owner == uid
        and not each.users
        # To the second; of a clock that was set it says too little.
        and each.made_s >= int(since_s)
    )


def remove(segment: Segment) -> str:
    """Remove one; why it is still there, or ""."""
    if _libc.shmctl(segment.id, _REMOVE, None) == 0:
        return ""
    code = ctypes.get_errno()
    return "" if code in (22, 43) else os.strerror(code).lower()  # gone meanwhile: EINVAL, EIDRM
