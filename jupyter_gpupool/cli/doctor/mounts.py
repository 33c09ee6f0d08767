"""The file systems that this process sees, as the kernel lists them."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOUNTS = Path("/proc/self/mounts")
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A file system and where it is."""

    folder: Path
    file_system: str
    options: tuple[str, ...]


def mount_of(path: Path) -> Mount:
    """The file system that a path is on. What was mounted last hides what was there before."""
    real = Path(os.path.realpath(path))
    above = [mount for mount in all_mounts() if real.is_relative_to(mount.folder)]
    deepest = max(len(mount.folder.parts) for mount in above)
    return [mount for mount in above if len(mount.folder.parts) == deepest][-1]


def all_mounts(text: str | None = None) -> Iterator[Mount]:
    """Every mount, in the order in which they were made."""
    for line in (_MOUNTS.read_text(errors="replace") if text is None else text).splitlines():
        _, folder, file_system, options, *_ = line.split(" ")
        yield Mount(Path(_plain(folder)), file_system, tuple(options.split(",")))


def _plain(text: str) -> str:
    # The kernel writes a space, a tab, a line break and a backslash as octal numbers.
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)
