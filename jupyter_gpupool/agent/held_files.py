"""Which files processes hold: open, mapped, or as the address of a socket.

Called by `leftovers`. Each function finds nothing where we may not look, and of a process that has
gone meanwhile.
"""

import os
import re
import socket
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_SOCKET = re.compile(r"socket:\[(\d+)\]")
_ASKED_FOR_S = 0.2


@dataclass(frozen=True, slots=True)
class Held:
    """What processes hold.

    Attributes:
        files: Open or mapped, below the folders that were asked about.
        sockets: Addresses of their Unix sockets.
    """

    files: frozenset[Path]
    sockets: frozenset[Path]


def held_by(pids: Iterable[int], folders: Collection[Path]) -> Held:
    """What these processes hold; each is read once, for they are about to be ended."""
    files: set[Path] = set()
    sockets: set[Path] = set()
    for pid in pids:
        opened = tuple(_opened(pid))
        named = {Path(text) for text in (*opened, *_mapped(pid, folders)) if text[0] == "/"}
        files |= {path for path in named if any(folder in path.parents for folder in folders)}
        sockets |= _sockets(pid, opened)
    return Held(frozenset(files), frozenset(sockets))


def held_in(folder: Path, pid: int) -> frozenset[Path]:
    """The files right in a folder that a process maps or has open; none where we may not look."""
    return frozenset(path for path in held_below(folder, pid) if path.parent == folder)


def held_below(folder: Path, pid: int) -> frozenset[Path]:
    """The same of all that is below a folder."""
    return held_by([pid], [folder]).files


def bound_sockets() -> frozenset[Path]:
    """The address of each Unix socket that is bound to a file, whosever it is."""
    return frozenset(path for path, _ in _bound(os.getpid()))


def is_dead_socket(path: Path) -> bool:
    """Whether nobody listens there: not even a process that sees other networks than we do."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(_ASKED_FOR_S)
            asking.connect(str(path))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _sockets(pid: int, opened: Iterable[str]) -> set[Path]:
    found = (_SOCKET.fullmatch(text) for text in opened)
    mine = {match[1] for match in found if match}
    return {path for path, inode in _bound(pid) if inode in mine} if mine else set()


def _bound(pid: int) -> Iterator[tuple[Path, str]]:
    """The addresses of Unix sockets of the network that a process sees, with their inodes."""
    try:
        lines = Path(f"/proc/{pid}/net/unix").read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        # Num RefCount Protocol Flags Type St Inode Path
        fields = line.split(maxsplit=7)
        if len(fields) > 7 and fields[7].startswith(b"/"):  # noqa: PLR2004 - as in the line above
            yield Path(os.fsdecode(fields[7])), fields[6].decode()


def _mapped(pid: int, folders: Iterable[Path]) -> Iterator[str]:
    try:
        raw = Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return
    for folder in folders:
        mark = f" {folder}/".encode()
        for line in raw.splitlines() if mark in raw else ():
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
