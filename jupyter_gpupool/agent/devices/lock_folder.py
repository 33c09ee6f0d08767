"""Where the device locks lie, and how their files are made among users who may not trust others.

Called by `lock.DeviceLocks`. Every user of a host must come to the same folder, root as well, or
two pools would lock the same device in two places.
"""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from jupyter_gpupool.pool.errors import Unavailable

_EVERYONE = 0o1777
_FILE_MODE = 0o666
_USUAL = Path("/run/lock/gpupool")
_FALLBACK = Path("/tmp/gpupool-locks")  # noqa: S108 - shared on purpose, and checked below


def find_folder(folder: Path | None = None) -> Path:
    """The folder all pools of this host use, made if it is not there.

    Raises:
        Unavailable: If it cannot be shared by all users.
    """
    chosen = folder or agreed_folder()
    if not os.path.lexists(chosen):
        _make(chosen)
    _check(chosen)
    return chosen


def open_lock_file(path: Path) -> int:
    """Open a lock file, made if it is not there. The descriptor is not inherited by exec.

    Raises:
        Unavailable: If it is no plain file, or cannot be opened.
    """
    while True:
        fd = open_if_there(path)
        if fd is not None:
            return fd
        _make_file(path)


def open_if_there(path: Path) -> int | None:
    """Open a lock file; None if nobody has made it yet.

    Raises:
        Unavailable: If it is no plain file, or cannot be opened.
    """
    try:
        # Without O_CREAT: the kernel may refuse that on another user's file in such a folder.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _cannot_open(path, error.strerror or str(error)) from error
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise _cannot_open(path, "it is no plain file")


def agreed_folder(usual: Path = _USUAL, fallback: Path = _FALLBACK) -> Path:
    """Decided by what every user sees alike, once the first of them has made the folder."""
    parent = usual.parent
    if usual.is_dir() or (parent.is_dir() and stat.S_IMODE(parent.stat().st_mode) == _EVERYONE):
        return usual
    # Root alone may make the usual one there; but not beside one that is in use already.
    if _is_root() and parent.is_dir() and not os.path.lexists(fallback):
        return usual
    return fallback


def _make(folder: Path) -> None:
    """Make it aside and move it into place, so that nobody meets it with half its rights."""
    try:
        with tempfile.TemporaryDirectory(prefix=".gpupool-", dir=folder.parent) as aside:
            made = Path(aside) / "made"
            made.mkdir()
            made.chmod(_EVERYONE)
            made.rename(folder)
    except OSError as error:
        if not folder.exists():
            raise Unavailable(
                f"The folder for device locks {folder} cannot be made: {error.strerror}.",
                hint=f"Let root make it with mode {_EVERYONE:o}.",
            ) from error


def _check(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise Unavailable(
            f"{folder} is no folder, so devices cannot be locked.",
            hint="Find out who made it, and remove it.",
        )
    if _is_root() and status.st_uid != 0:
        # Its owner could rename the locks of all others away.
        _take_over(folder)
        return
    if stat.S_IMODE(status.st_mode) == _EVERYONE:
        return
    if status.st_uid != os.geteuid():
        raise Unavailable(
            f"{folder} cannot be shared by all users, so devices cannot be locked.",
            hint=f"Let its owner run: chmod {_EVERYONE:o} {folder}",
        )
    folder.chmod(_EVERYONE)


def _is_root() -> bool:
    return os.geteuid() == 0


def _take_over(folder: Path) -> None:
    """Make it root's. By descriptor, for its owner may put something else in its place."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchown(fd, 0, 0)
        os.fchmod(fd, _EVERYONE)
    except OSError as error:
        raise Unavailable(
            f"The folder for device locks {folder} cannot become root's: {error.strerror}."
        ) from error
    finally:
        os.close(fd)


def _make_file(path: Path) -> None:
    """Make it aside and link it into place: others see nothing, or a file they may open."""
    try:
        with tempfile.NamedTemporaryFile(prefix=".", dir=path.parent) as aside:
            os.fchmod(aside.fileno(), _FILE_MODE)
            with suppress(FileExistsError):
                os.link(aside.name, path)
    except OSError as error:
        raise _cannot_open(path, error.strerror or str(error)) from error


def _cannot_open(path: Path, reason: str) -> Unavailable:
    return Unavailable(
        f"The device lock {path} cannot be opened: {reason}.",
        hint="Find out who made it, and remove it if no pool runs on this host.",
    )
