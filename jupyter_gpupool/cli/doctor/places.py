"""Where a pool of this user keeps what it writes: looked at by `folders` and `disks`."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from jupyter_gpupool.client.discovery import runtime_file

from .sight import Sight


class Kind(Enum):
    """What a folder is for; the value is what people call it."""

    STATE = "state folder"
    RUNTIME = "runtime folder"
    TEMPORARY = "temporary folder"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that is written to, whether it is there already or not."""

    kind: Kind
    path: Path

    @property
    def existing(self) -> Path:
        """The folder, or the one in which it would be made."""
        return next(path for path in (self.path, *self.path.parents) if _is_seen(path))


def places(sight: Sight) -> Iterator[Place]:
    """The folders that matter to this user.

    Who uses a pool that others run has no state folder, unless a manager or an agent made one.
    """
    from jupyter_gpupool.manager.app import (  # noqa: PLC0415 - a service, and 0.3 s
        default_embedded_folder,
        default_state_folder,
    )

    if not sight.is_pool_named:
        yield Place(Kind.STATE, default_embedded_folder())
    elif default_state_folder().parent.exists():
        yield Place(Kind.STATE, default_state_folder().parent)
    yield Place(Kind.RUNTIME, runtime_file().parent)
    yield Place(Kind.TEMPORARY, Path(os.environ.get("TMPDIR") or _usual_temporary()))


def _is_seen(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        # What lies in a closed folder is nothing to this user; the folder is what they see.
        return False


def _usual_temporary() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        # None can be written: `folders` and `disks` say why.
        return "/tmp"  # noqa: S108 - it is only looked at
