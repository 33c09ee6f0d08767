"""May this user write where a pool of theirs writes?"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .finding import Finding, problem, well
from .places import Kind, Place, places
from .sight import Sight

_OURS = {Kind.STATE: ("*", "*/*"), Kind.RUNTIME: ("gpupool-*",), Kind.TEMPORARY: ()}
"""Files of earlier pools that the next one writes again."""
_WAYS_OUT = {
    Kind.STATE: "set XDG_STATE_HOME to a folder of your own on a local disk",
    Kind.RUNTIME: "set JUPYTER_RUNTIME_DIR to a folder of your own",
    Kind.TEMPORARY: "set TMPDIR to a folder that you may write",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFacts:
    """How a place can be used.

    Attributes:
        existing: The folder that is there already: the place, or where it would be made.
        is_writable: Files can be made in it, as far as rights go.
        is_owned: It is this user's.
        closed: What lies in it and this user may not write.
    """

    place: Place
    existing: Path
    is_writable: bool
    is_owned: bool
    closed: tuple[Path, ...] = ()


def check_folders(sight: Sight) -> Iterator[Finding]:
    """Look at each place."""
    for place in places(sight):
        yield judge_folder(look_at_folder(place))


def judge_folder(facts: FolderFacts) -> Finding:
    """A folder that cannot be written stops whoever needs it."""
    what, way_out = facts.place.kind.value, _WAYS_OUT[facts.place.kind]
    reference = what.replace(" ", "-")
    if not facts.is_writable:
        mend = f"Run: chmod u+rwx {facts.existing}; or " if facts.is_owned else "Ask its owner, or "
        sentence = f"You may not write the {what} {facts.place.path}: {facts.existing} is closed."
        return problem(f"{reference}-closed", sentence, f"{mend}{way_out}.")
    if facts.closed:
        files = ", ".join(map(str, facts.closed))
        mend = f"Remove what another user left there, or {way_out}."
        return problem(f"{reference}-file-closed", f"You may not write {files}.", mend)
    return well(reference, f"You may write the {what} {facts.place.path}.")


def look_at_folder(place: Place) -> FolderFacts:
    """Ask the kernel; nothing is made."""
    existing = place.existing
    is_read_only = bool(os.statvfs(existing).f_flag & os.ST_RDONLY)
    is_writable = existing.is_dir() and _may(existing, os.R_OK | os.W_OK | os.X_OK)
    return FolderFacts(
        place=place,
        existing=existing,
        # What no right can help with is for `disks` to tell.
        is_writable=is_writable or is_read_only,
        is_owned=existing.stat().st_uid == os.geteuid(),
        closed=() if is_read_only or not is_writable else _closed_in(place),
    )


def _closed_in(place: Place) -> tuple[Path, ...]:
    ours = (path for pattern in _OURS[place.kind] for path in sorted(place.path.glob(pattern)))
    return tuple(path for path in ours if not path.is_symlink() and not _may(path, os.W_OK))


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=True)
