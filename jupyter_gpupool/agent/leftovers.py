"""Shared memory that processes of a claim leave behind: noted while they live, then removed.

Called by `sweeping` around the end of each scheduler and worker. What a process maps or has open in
the folder of shared memory right before it ends is removed after it, if it came there after the
claim's first start here, is its user's, bears a name that libraries give, and no process holds it
any more. A data set that somebody put there for later stays. Another claim of the same
user, or the user's own program, keeps what it holds. What a process had let go of before, or had
when it was killed by somebody else, is not known to be the claim's and stays.
"""

import logging
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from threading import Lock

from jupyter_gpupool.pool.ids import ClaimId

from . import procfs

logger = logging.getLogger(__name__)

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the system's own place, and nothing is made there
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


class Leftovers:
    """What was there before each claim, by claim. Asked from the loop and from a thread."""

    def __init__(self, folder: Path = SHARED_MEMORY) -> None:
        self._folder = folder
        self._before: dict[ClaimId, frozenset[int]] = {}
        self._lock = Lock()

    def note_start(self, claim_id: ClaimId) -> None:
        """Remember what is there before the first process of a claim starts here."""
        with self._lock:
            if claim_id not in self._before:
                self._before[claim_id] = frozenset(_inodes(self._folder))

    def forget_others(self, keep: Collection[ClaimId]) -> None:
        """These claims alone can still have processes here."""
        with self._lock:
            self._before = {c: seen for c, seen in self._before.items() if c in keep}

    def held_by(self, claim_id: ClaimId, pids: Iterable[int]) -> frozenset[Path]:
        """What these processes of a claim hold that was not there before it.

        Nothing after a restart of the agent: it does not know what was there before.
        """
        with self._lock:
            before = self._before.get(claim_id)
        if before is None:
            return frozenset()
        held = {path for pid in pids for path in held_in(self._folder, pid)}
        named = (path for path in held if path.name.startswith(_OF_LIBRARIES))
        return frozenset(path for path in named if _inode(path) not in before)

    def remove(self, paths: Iterable[Path], uid: int | None) -> None:
        """Remove those that are the user's and that nobody holds any more."""
        mine = {path for path in paths if _is_left(path, uid)}
        if not mine:
            return
        for pid in procfs.all_pids():
            mine -= held_in(self._folder, pid)
        for path in sorted(mine):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                logger.warning("Shared memory %s cannot be removed: %s", path, error.strerror)
            else:
                logger.info("Shared memory that its claim had left behind is removed: %s", path)


def held_in(folder: Path, pid: int) -> frozenset[Path]:
    """The files right in a folder that a process maps or has open; none where we may not look."""
    named = (Path(text) for text in (*_mapped(pid, folder), *_opened(pid)))
    return frozenset(path for path in named if path.parent == folder)


def _mapped(pid: int, folder: Path) -> Iterator[str]:
    try:
        raw = Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return
    mark = f" {folder}/".encode()
    if mark not in raw:
        return
    for line in raw.splitlines():
        _, found, name = line.partition(mark)
        if found:
            yield f"{folder}/{os.fsdecode(name)}"


def _opened(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - far faster
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"{folder}/{name}")  # noqa: PTH115 - text
        except OSError:
            continue


def _is_left(path: Path, uid: int | None) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    # Whoever is not root sees only its own user's processes, and others might hold it.
    is_private = not stat.S_IMODE(found.st_mode) & _FOR_OTHERS
    return stat.S_ISREG(found.st_mode) and found.st_uid == uid and (is_private or not os.getuid())


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except OSError:
        return None


def _inodes(folder: Path) -> Iterator[int]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.inode() for entry in entries)
    except OSError:
        return
