"""May a root zygote load this Python environment? Only if root alone could have written all of it.

Called by `zygotes` once for its interpreter. The decision is pure over what `look_at` found.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_SYSTEM_PREFIXES = (Path("/usr"), Path("/usr/local"))
"""Too large to be looked through; what Python loads from there is found in other ways."""


class PathFacts(NamedTuple):
    """Who owns a path and who may write it. A tuple: an environment has a hundred thousand.

    Attributes:
        is_parent: It only leads to something of the environment.
        is_link: Its mode says nothing; where it leads is looked at for itself.
        leads_elsewhere: It has Python load from paths that only running it would tell.
    """

    path: str
    uid: int
    mode: int
    is_parent: bool = False
    is_link: bool = False
    leads_elsewhere: bool = False


def first_untrusted(facts: Iterable[PathFacts]) -> Path | None:
    """The first path that somebody but root may change, or None if there is none."""
    return next((Path(fact.path) for fact in facts if not _is_roots_alone(fact)), None)


def look_at(interpreter: Path, libraries: str = "") -> Iterator[PathFacts]:
    """Everything an interpreter loads from: folders with all in them, links' ends, and parents.

    Only an agent's own interpreter can be asked for its folders without running it as root; of
    another one its whole prefix is taken.

    Args:
        interpreter: The Python.
        libraries: Folders the loader takes libraries from first: LD_LIBRARY_PATH.
    """
    folders = [Path(entry) for entry in libraries.split(":") if entry.startswith("/")]
    look = _Look([interpreter, *_import_folders(interpreter), *folders])
    while look.ahead:
        yield from look.at(look.ahead.pop())


class _Look:
    """A walk that sees each path once, and goes on to where links and path files lead."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self.ahead = [Path(os.path.abspath(root)) for root in roots]  # noqa: PTH100 - links stay
        self._seen: set[tuple[str, bool]] = set()

    def at(self, root: Path) -> Iterator[PathFacts]:
        for parent in reversed(root.parents):
            yield from self._facts(str(parent), is_parent=True)
        if not os.path.lexists(root):
            # Whoever may write the nearest folder there is can make the missing one.
            there = next(parent for parent in root.parents if parent.exists())
            yield from self._facts(str(there))
            return
        yield from self._all_in(str(root))

    def _all_in(self, top: str) -> Iterator[PathFacts]:
        folders = [top]
        while folders:
            path = folders.pop()
            for fact in self._facts(path):
                yield fact
                if stat.S_ISDIR(fact.mode):
                    folders += _entries(path)
                elif path.endswith(".pth"):
                    self.ahead += _named_in(Path(path))

    def _facts(self, path: str, *, is_parent: bool = False) -> Iterator[PathFacts]:
        if (path, is_parent) in self._seen:
            return
        self._seen.add((path, is_parent))
        try:
            found = os.lstat(path)
        except OSError:
            # What cannot be looked at cannot be loaded either.
            return
        is_link = stat.S_ISLNK(found.st_mode)
        if is_link:
            self.ahead.append(Path(path).parent / os.readlink(path))  # noqa: PTH115 - as it is
        yield PathFacts(
            path,
            found.st_uid,
            found.st_mode,
            is_parent=is_parent,
            is_link=is_link,
            leads_elsewhere=_is_finder(path),
        )


def _is_roots_alone(fact: PathFacts) -> bool:
    if fact.uid != 0 or fact.leads_elsewhere:
        return False
    if fact.is_link or not fact.mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    # In a sticky folder such as /tmp nobody can replace what belongs to root.
    return fact.is_parent and bool(fact.mode & stat.S_ISVTX)


def _import_folders(interpreter: Path) -> list[Path]:
    if interpreter == Path(sys.executable):
        entries = [Path(entry) for entry in sys.path if entry]
        prefixes = {Path(sys.prefix), Path(sys.base_prefix)}
    else:
        entries = []
        prefixes = {interpreter.parent.parent, interpreter.resolve().parent.parent}
        prefixes |= {home.resolve().parent for home in _homes(interpreter)}
    if not prefixes.isdisjoint(_SYSTEM_PREFIXES):
        # A Debian's Python in the one loads from the other as well.
        prefixes |= set(_SYSTEM_PREFIXES)
    for prefix in prefixes:
        is_system = prefix in _SYSTEM_PREFIXES
        names = ("lib/python3*",) if is_system else ("lib", "lib64", "pyvenv.cfg")
        entries += (path for name in names for path in prefix.glob(name))
    return entries


def _homes(interpreter: Path) -> Iterator[Path]:
    """Where the Python is that an environment was made of, should its own be a copy of that."""
    for folder in (interpreter.parent, interpreter.parent.parent):
        try:
            lines = (folder / "pyvenv.cfg").read_text(errors="surrogateescape").splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, value = line.partition("=")
            if name.strip().lower() == "home" and value.strip().startswith("/"):
                yield Path(value.strip())


def _entries(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries]
    except OSError:
        return []


def _named_in(path_file: Path) -> list[Path]:
    """The folders that a `.pth` file adds; its code is root's own, like all that was looked at."""
    try:
        lines = path_file.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    names = (line.strip() for line in lines)
    return [
        path_file.parent / name for name in names if name and not name.startswith(("#", "import"))
    ]


def _is_finder(path: str) -> bool:
    """An editable install of setuptools that maps names to folders in its code."""
    name = path.rpartition("/")[2]
    return name.startswith("__editable__") and name.endswith("_finder.py")
