"""A claim's working folder and logs on this host: made, kept small, removed.

Called by `starting`, `carry_out` and `housekeeping`. The working folder is its user's.
Logs are the agent's: a process gets its log as an open descriptor, never as a path, so no symbolic
link of a user's can turn the agent's hand.
"""

import os
import shutil
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.ids import ClaimId

from .keys import ProcessKey
from .log_ends import tail
from .removing import Stuck, remove
from .state_folder import StateFolder
from .temporary import forget_temporary, set_aside_temporary

LOGS_KEPT_S = 7 * 86400.0
LARGEST_LOG_BYTES = 50 * 2**20
_KEPT_OF_LARGE_LOG_BYTES = 2**20
_GONE = ".gone-"


def make_working_folder(folder: StateFolder, claim_id: ClaimId, *, uid: int, gid: int) -> Path:
    """Make the claim's own folder, for its user alone.

    Raises:
        Unavailable: If it cannot be made, or something else is there.
    """
    path = folder.claim(claim_id)
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        if path.is_symlink():
            raise Unavailable(f"The working folder {path} is a symbolic link.")
        if path.stat().st_uid != uid:
            os.chown(path, uid, gid)
    except OSError as error:
        raise Unavailable(
            f"The claim's working folder {path} cannot be made: {error.strerror}.",
            hint="Look after the agent's state folder.",
        ) from error
    return path


def open_log(folder: StateFolder, key: ProcessKey) -> int:
    """Open a process's log for appending; the caller closes the descriptor.

    Raises:
        Unavailable: If it cannot be opened.
    """
    path = folder.log(key)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise Unavailable(
            f"The log {path} cannot be opened: {error.strerror}.",
            hint="Look after the agent's state folder.",
        ) from error


def set_aside_working_folders(folder: StateFolder, *, keep: Collection[ClaimId]) -> list[Path]:
    """Take the working folders of claims that are over out of the way; the caller removes them."""
    gone: list[Path] = []
    for path in tuple(folder.claims.iterdir()):
        if path.name.startswith(_GONE):
            gone.append(path)
        elif path.name not in keep:
            forget_temporary(folder, ClaimId(path.name))
            gone.append(path.rename(_aside(folder, ClaimId(path.name))))
    return gone


def set_aside_what_is_over(
    folder: StateFolder, claim_id: ClaimId, *, all_of_it: bool
) -> tuple[Path, ...]:
    """The same for one claim: its folder; or, while its scheduler ends, its temporary files."""
    before = tuple(p for p in set_aside_before(folder) if claim_of(p) == claim_id)
    aside = _aside(folder, claim_id)
    if not all_of_it:
        return (*before, aside) if set_aside_temporary(folder, claim_id, aside) else before
    forget_temporary(folder, claim_id)
    try:
        return (*before, folder.claim(claim_id).rename(aside))
    except OSError:
        return before


def set_aside_before(folder: StateFolder) -> tuple[Path, ...]:
    """What was set aside and is still there, such as a dead agent's."""
    return tuple(folder.claims.glob(f"{_GONE}*"))


def claim_of(aside: Path) -> ClaimId:
    """Whose a folder was that is set aside."""
    return ClaimId(aside.name.removeprefix(_GONE).rpartition("-")[0])


def remove_folders(folders: Iterable[Path]) -> tuple[Stuck, ...]:
    """Remove them with all that is in them. May take long.

    Returns:
        What cannot be removed; it is tried again with the next ones.
    """
    return tuple(stuck for path in folders if (stuck := remove(path)) is not None)


def _aside(folder: StateFolder, claim_id: ClaimId) -> Path:
    return folder.claims / f"{_GONE}{claim_id}-{time.monotonic_ns()}"


def remove_old_logs(folder: StateFolder, *, keep: Collection[ClaimId]) -> None:
    """Remove the logs of claims that are long over, and cut all that grew too large."""
    for path in tuple(folder.logs.iterdir()):
        if not path.is_dir():
            continue
        if path.name not in keep and _age_s(path) > LOGS_KEPT_S:
            shutil.rmtree(path, ignore_errors=True)
        else:
            cut_large(path.glob("*.log"))


def cut_large(logs: Iterable[Path], *, only_look: bool = False) -> int:
    """Cut the logs that grew too large; how many those are."""
    large = [log for log in logs if _size(log) > LARGEST_LOG_BYTES]
    for log in () if only_look else large:
        _cut(log)
    return len(large)


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _cut(log: Path) -> None:
    """Keep the end alone. Its writer appends, so it goes on behind what is kept."""
    kept = tail(log, _KEPT_OF_LARGE_LOG_BYTES)
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(kept)


def _age_s(folder: Path) -> float:
    newest = max((log.stat().st_mtime for log in folder.iterdir()), default=folder.stat().st_mtime)
    return time.time() - newest
