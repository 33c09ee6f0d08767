"""May a root zygote load this Python environment? Only if root alone could have written it.

Called by `zygotes` once for its interpreter. The decision is pure over what `look_at` found.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PathFacts:
    """Who owns a path and who may write it.

    Attributes:
        is_parent: It only leads to something of the environment.
    """

    path: Path
    uid: int
    mode: int
    is_parent: bool = False


def first_untrusted(facts: Iterable[PathFacts]) -> Path | None:
    """The first path that somebody but root may change, or None if there is none."""
    return next((fact.path for fact in facts if not _is_roots_alone(fact)), None)


def look_at(interpreter: Path) -> Iterator[PathFacts]:
    """Everything an interpreter loads from: itself, its folders, their first level, and parents.

    Only an agent's own interpreter can be asked for its folders without running it as root; of
    another one its whole prefix is taken.
    """
    roots = [interpreter, interpreter.resolve(), *_import_folders(interpreter)]
    seen: set[Path] = set()
    for root in roots:
        for parent in reversed(root.parents):
            yield from _facts(parent, seen, is_parent=True)
        yield from _facts(root, seen)
        yield from _first_level(root, seen)


def _is_roots_alone(fact: PathFacts) -> bool:
    if fact.uid != 0:
        return False
    if not fact.mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    # In a sticky folder such as /tmp nobody can replace what belongs to root.
    return fact.is_parent and bool(fact.mode & stat.S_ISVTX)


def _import_folders(interpreter: Path) -> list[Path]:
    if interpreter == Path(sys.executable):
        return [Path(entry) for entry in sys.path if entry]
    prefixes = {interpreter.parent.parent, interpreter.resolve().parent.parent}
    return [
        folder
        for prefix in sorted(prefixes)
        for folder in (*prefix.glob("lib/python3*"), *prefix.glob("lib/python3*/site-packages"))
    ]


def _first_level(root: Path, seen: set[Path]) -> Iterator[PathFacts]:
    if root.is_dir():
        for entry in os.scandir(root):
            yield from _facts(Path(entry.path), seen)


def _facts(path: Path, seen: set[Path], *, is_parent: bool = False) -> Iterator[PathFacts]:
    if path in seen:
        return
    seen.add(path)
    try:
        found = path.stat()
    except OSError:
        # What cannot be looked at cannot be loaded either.
        return
    yield PathFacts(path, found.st_uid, found.st_mode, is_parent)
