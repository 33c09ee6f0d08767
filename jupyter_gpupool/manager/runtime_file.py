"""The file by which this user's kernels and scripts find their embedded pool.

Written once the manager listens, removed when it ends if it is still its own. What it says, and
why so much, stands in `protocol/runtime_file.py`.
"""

import contextlib
import os
import socket
from datetime import datetime
from pathlib import Path

from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.protocol.runtime_file import RuntimeFile, host_mark, runtime_file_name

from .private_files import read_private, write_private

_STARTED = 19
"""Of the fields that follow the command's name in /proc/PID/stat: field 22 of all."""


def default_runtime_file(folder: Path) -> Path:
    """The file of this host in the Jupyter runtime folder."""
    return folder / runtime_file_name(this_host())


def write_runtime_file(path: Path, *, url: str, token: str, started: datetime) -> None:
    """Tell clients where the pool is. The token in it is its user's own.

    Raises:
        Unavailable: If the file cannot be written.
    """
    told = RuntimeFile(
        url=url,
        token=token,
        manager_pid=os.getpid(),
        manager_started=started_at(os.getpid()),
        host=this_host(),
        boot_id=_text(Path("/proc/sys/kernel/random/boot_id")),
        uid=os.getuid(),
        started=started,
    )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, told.model_dump_json())
    except OSError as error:
        raise Unavailable(
            f"The runtime file {path} cannot be written: {error.strerror}.",
            hint="Make room or change its folder's rights, or choose another with --runtime-file.",
        ) from error


def remove_runtime_file(path: Path) -> None:
    """Remove the file, unless a newer manager has written its own."""
    with contextlib.suppress(ValueError, OSError):
        told = RuntimeFile.model_validate_json(read_private(path))
        if (told.manager_pid, told.manager_started) == (os.getpid(), started_at(os.getpid())):
            path.unlink()


def this_host() -> str:
    """A mark of this host, for the names of what must not be shared with others."""
    return host_mark(_text(Path("/etc/machine-id")), socket.gethostname())


def started_at(pid: int) -> int:
    """When this process started, in ticks since boot.

    Raises:
        OSError: If there is none of this number.
    """
    after_name = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(after_name[_STARTED])


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
