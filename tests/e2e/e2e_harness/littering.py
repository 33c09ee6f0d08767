"""What tasks leave behind on their host, by kind; run on workers for `client_process`."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from multiprocessing.managers import SyncManager
from pathlib import Path
from typing import Any


def plain() -> tuple[str, str]:
    """A temporary file, as anybody makes one; where temporary files are, and the file."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(b"x")
    return tempfile.gettempdir(), file.name


def managed() -> int:
    """Use what makes Unix sockets among temporary files; the length of a list kept there."""
    with SyncManager() as manager:
        kept = manager.list([1, 2, 3])
        return len(kept)


def hostile() -> str:
    """A folder that nobody may write, a file held open, and links that lead out."""
    folder = Path(tempfile.mkdtemp())
    (folder / "link").symlink_to("/etc")
    (folder / "up").symlink_to("../../../..")
    shut = folder / "shut"
    shut.mkdir()
    (shut / "file").write_text("x")
    os.open(shut / "file", os.O_RDWR)
    (shut / "link").symlink_to("/etc/passwd")
    shut.chmod(0)
    return str(folder)


def many() -> int:
    """So many files that removing them takes a while."""
    folder = Path(tempfile.mkdtemp())
    for number in range(200):
        inner = folder / f"{number}"
        inner.mkdir()
        for each in range(50):
            (inner / f"{each}").touch()
    return 10_000


def immutable() -> str | None:
    """A file that cannot be removed, if it can be made here."""
    _, name = plain()
    done = subprocess.run(["chattr", "+i", name], capture_output=True, check=False)
    return None if done.returncode else name


KINDS: Mapping[str, Callable[[], Any]] = {
    each.__name__: each for each in (plain, managed, hostile, many, immutable)
}
