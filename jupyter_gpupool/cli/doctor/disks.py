"""Is there room, and the right kind of disk, where a pool of this user writes?"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from jupyter_gpupool.pool.units import format_bytes

from .finding import Finding, problem, warning, well
from .mounts import mount_of
from .places import Kind, Place, places
from .sight import Sight

_LITTLE_BYTES, _NO_BYTES = 2**30, 100 * 2**20
_LITTLE_FILES, _NO_FILES = 10_000, 1_000
_NETWORK = frozenset(
    (
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.ceph",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.sshfs",
        "gfs2",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "ocfs2",
        "panfs",
        "smb3",
        "smbfs",
        "wekafs",
    )
)
_MEND_ROOM = "Make room there, or move what lies there to another disk."


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """The disk below a place.

    Attributes:
        free_bytes, free_files: What this user may still use. `files` is 0 where none are counted.
        file_system: Its type, as the kernel names it.
    """

    place: Place
    free_bytes: int
    bytes: int
    free_files: int
    files: int
    is_read_only: bool = False
    file_system: str = ""


def check_disks(sight: Sight) -> Iterator[Finding]:
    """Look at the disk below each place."""
    for place in places(sight):
        yield from judge_disk(look_at_disk(place))


def judge_disk(facts: DiskFacts) -> Iterator[Finding]:
    """A full disk stops the pool, and SQLite's log needs memory that processes of a host share."""
    reference, name = facts.place.kind.value.replace(" ", "-"), _name(facts.place)
    if facts.is_read_only:
        yield problem(
            f"{reference}-read-only",
            f"{name} is on a disk that is mounted read-only.",
            "Mount it for writing (its log says why it is not), or choose another folder.",
        )
        return
    if facts.place.kind is Kind.STATE and facts.file_system in _NETWORK:
        yield problem(
            "state-folder-on-network",
            f"{name} is on a network file system ({facts.file_system}), where SQLite is not safe.",
            "Set XDG_STATE_HOME to a folder on a local disk, or give the manager one with --state.",
        )
    yield _judge_room(facts, f"{reference}-disk", name)


def _judge_room(facts: DiskFacts, reference: str, name: str) -> Finding:
    room = f"{format_bytes(facts.free_bytes)} free"
    if facts.free_bytes < min(_NO_BYTES, facts.bytes // 100):
        return problem(f"{reference}-full", f"The disk of {name} is full: {room}.", _MEND_ROOM)
    if facts.files and facts.free_files < min(_NO_FILES, facts.files // 100):
        what = f"The disk of {name} can hold only {facts.free_files} more files."
        return problem(f"{reference}-out-of-inodes", what, "Remove small files there.")
    if facts.free_bytes < min(_LITTLE_BYTES, facts.bytes // 10):
        what = f"The disk of {name} is nearly full: {room}."
        return warning(f"{reference}-nearly-full", what, _MEND_ROOM)
    if facts.files and facts.free_files < min(_LITTLE_FILES, facts.files // 10):
        what = f"The disk of {name} can hold only {facts.free_files} more files."
        return warning(f"{reference}-few-inodes", what, "Remove small files there.")
    return well(reference, f"The disk of {name} has {room}.")


def look_at_disk(place: Place) -> DiskFacts:
    """Ask the kernel. May wait for a network file system that does not answer."""
    existing = place.existing
    told = os.statvfs(existing)
    return DiskFacts(
        place=place,
        free_bytes=told.f_bavail * told.f_frsize,
        bytes=told.f_blocks * told.f_frsize,
        free_files=told.f_favail,
        files=told.f_files,
        is_read_only=bool(told.f_flag & os.ST_RDONLY),
        file_system=mount_of(existing).file_system,
    )


def _name(place: Place) -> str:
    return f"the {place.kind.value} {place.path}"
