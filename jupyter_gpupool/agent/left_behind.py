"""What of the files in shared memory and in folders for temporary files was a claim's alone.

Called by `leftovers`. A file that somebody put there for later stays, and so does whatever anybody
holds. Signs that tell a claim's own safely:

- what its processes mapped or had open in shared memory right before they ended, which came there
  after its first start here and bears a name that libraries give;
- the address right there of a Unix socket that they had bound, on which nobody listens any more;
- what bears a name in which libraries put the pid of a process of its own that is dead, and came
  there after its first start here.
"""

import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import procfs
from .held_files import Held, bound_sockets, held_by, is_dead_socket
from .trail import Trail

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the system's own place, and nothing is made there
TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - as above
_FOR_OTHERS = 0o077
_OF_LIBRARIES = (
    "psm_",
    "torch_",
    "nccl-",
    "cuda.shm.",
    "ucx_",
    "sem.",
    "vader_segment.",
    "__KMP_REGISTERED_LIB_",
)
"""How names begin that nobody chose: of multiprocessing, PyTorch, NCCL, CUDA, UCX, semaphores, Open
MPI and OpenMP."""
_WITH_PID = (
    (re.compile(r"torch_(\d+)_"), 10),
    (re.compile(r"joblib_memmapping_folder_(\d+)_"), 10),
    (re.compile(r"__KMP_REGISTERED_LIB_(\d+)"), 10),
    (re.compile(r"cuda\.shm\.[0-9a-f]+\.([0-9a-f]+)\."), 16),
)
"""Names that say whose they are, and in which base they count."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where processes leave things: shared memory, and folders for temporary files."""

    memory: Path = SHARED_MEMORY
    temporary: tuple[Path, ...] = TEMPORARY

    @property
    def all(self) -> tuple[Path, ...]:
        """Each of them."""
        return (self.memory, *self.temporary)

    def certain(self, held: Held, before: Collection[int]) -> frozenset[str]:
        """What of that can only be its processes' own."""
        here = (path for path in held.files if path.parent == self.memory)
        named = (path for path in here if path.name.startswith(_OF_LIBRARIES))
        files = {path for path in named if _inode(path) not in before}
        # Not further below: whoever owns the folder could have it lead elsewhere meanwhile.
        sockets = {path for path in held.sockets if path.parent in self.all}
        return frozenset(map(str, files | sockets))

    def in_doubt(self, held: Held, trail: Trail) -> frozenset[str]:
        """What of that came while its claim was here, and may be wanted by somebody."""
        new = (path for path in held.files if path.parent in self.all and _is_newer(path, trail))
        return frozenset(map(str, new)) - self.certain(held, trail.before)


def made_by_dead(places: Places, pids: Collection[int], trail: Trail) -> Iterator[Path]:
    """What bears the pid of one of these processes, who are dead, in its name."""
    if not pids:
        return
    for folder in places.all:
        for entry in _entries(folder):
            if _pid_in(entry.name) in pids and _is_new(entry, trail):
                yield Path(entry.path)


def is_left(path: Path, uid: int) -> bool:
    """Whether it is there, is this user's, and nobody we cannot see may hold it."""
    try:
        found = path.lstat()
    except OSError:
        return False
    if found.st_uid != uid:
        return False
    if stat.S_ISSOCK(found.st_mode):
        return is_dead_socket(path) and path not in bound_sockets()
    # Whoever is not root sees only its own user's processes, and others might hold it.
    is_private = not stat.S_IMODE(found.st_mode) & _FOR_OTHERS
    is_ours = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return is_ours and (is_private or not os.getuid())


def not_held(paths: Collection[Path]) -> frozenset[Path]:
    """Those of them that no process holds, nor anything in them."""
    left = set(paths)
    folders = {path.parent for path in left}
    for pid in procfs.all_pids() if left else ():
        held = held_by([pid], folders).files
        left = {path for path in left if not any(path == h or path in h.parents for h in held)}
    return frozenset(left)


def inodes(folder: Path) -> Iterator[int]:
    """Of what is right in a folder."""
    return (entry.inode() for entry in _entries(folder))


def _pid_in(name: str) -> int | None:
    for pattern, base in _WITH_PID:
        if match := pattern.match(name):
            return int(match[1], base)
    return None


def _is_new(entry: "os.DirEntry[str]", trail: Trail) -> bool:
    try:
        changed_s = entry.stat(follow_symlinks=False).st_ctime
    except OSError:
        return False
    return changed_s >= trail.since_s and entry.inode() not in trail.before


def _is_newer(path: Path, trail: Trail) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    is_new = found.st_ctime >= trail.since_s and found.st_ino not in trail.before
    return stat.S_ISREG(found.st_mode) and is_new


def _entries(folder: Path) -> "Iterator[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except OSError:
        return None
