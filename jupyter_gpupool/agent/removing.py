"""Removes what users' processes left, whatever they made of it: never through a link, nor a mount.

Called by `claim_folders` and `leftovers`. A user owns what is removed here and may try to turn the
agent's hand: each folder is opened by its name in the one above, as a folder and no link, and
nothing is looked for on another file system.
"""

import os
import stat
import uuid
from dataclasses import dataclass
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 100
"""Folders in folders that are gone through at a time, each with a descriptor of its own."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Something that could not be removed, and why, in the words of the system."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path} ({self.why})"


def remove(path: Path) -> Stuck | None:
    """Remove a file, a link, or a folder with all that is in it. May take long.

    Returns:
        The first thing that is still there, if any is; everything else is gone.
    """
    try:
        above = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Stuck(path, _why(error))
    try:
        return _Removal(above).remove(above, path.name, path)
    finally:
        os.close(above)


class _Removal:
    """One removal of an entry of the folder that `above` is a descriptor of."""

    def __init__(self, above: int) -> None:
        self._device = os.fstat(above).st_dev
        self._top = -1
        self._put_up: list[str] = []

    def remove(self, above: int, name: str, path: Path, depth: int = 0) -> Stuck | None:
        """Remove one entry."""
        try:
            found = os.lstat(name, dir_fd=above)
            if stat.S_ISDIR(found.st_mode):
                return self._remove_folder(above, name, path, depth)
            os.unlink(name, dir_fd=above)
        except FileNotFoundError:
            return None
        except OSError as error:
            return Stuck(path, _why(error))
        return None

    def _remove_folder(self, above: int, name: str, path: Path, depth: int) -> Stuck | None:
        if depth > _DEEPEST:
            deep = f".gone-{uuid.uuid4().hex}"
            os.rename(name, deep, src_dir_fd=above, dst_dir_fd=self._top)
            self._put_up.append(deep)
            return None
        folder = _open(above, name)
        try:
            if os.fstat(folder).st_dev != self._device:
                return Stuck(path, "another file system is mounted there")
            stuck = self._empty(folder, path, depth) if depth else self._empty_top(folder, path)
        finally:
            os.close(folder)
        if stuck is None:
            os.rmdir(name, dir_fd=above)
        return stuck

    def _empty_top(self, folder: int, path: Path) -> Stuck | None:
        """Empty the first folder; what lies too deep is put up into it, so depth stops nothing."""
        self._top = folder
        stuck = self._empty(folder, path, 0)
        while self._put_up:
            deep = self._put_up.pop()
            found = self.remove(folder, deep, path / deep, 1)
            stuck = stuck or found
        return stuck

    def _empty(self, folder: int, path: Path, depth: int) -> Stuck | None:
        # A folder that nobody may write keeps its own user from emptying it, too.
        _make_writable(folder)
        first: Stuck | None = None
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            stuck = self.remove(folder, name, path / name, depth + 1)
            first = first or stuck
        return first


def _open(above: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        # One that nobody may read. Should it have become a link meanwhile, its mode is not touched.
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)  # noqa: PTH101 - a descriptor
        finally:
            os.close(handle)
        return os.open(name, _FOLDER, dir_fd=above)


def _make_writable(folder: int) -> None:
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        try:
            os.fchmod(folder, stat.S_IRWXU)
        except OSError:
            return  # what cannot be removed from it is said


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
