"""What tells this host, this boot and a process of it from any other: called by `discovery`.

A runtime folder may be shared between hosts, and outlives a reboot: a pid alone proves nothing.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from jupyter_gpupool.protocol.runtime_file import RuntimeFile, host_mark

_STATE, _STARTED = 0, 19
"""Places in /proc/PID/stat after the command: fields 3 and 22."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisHost:
    """Where we run, in the words of a runtime file."""

    mark: str
    boot_id: str
    uid: int

    @classmethod
    def read(cls) -> "ThisHost":
        """As the kernel tells it."""
        return cls(
            mark=host_mark(_text("/etc/machine-id"), socket.gethostname()),
            boot_id=_text("/proc/sys/kernel/random/boot_id"),
            uid=os.getuid(),
        )

    def runs(self, manager: RuntimeFile) -> bool:
        """Whether the manager of this file is a process of ours that runs here and now."""
        said = (manager.host, manager.boot_id, manager.uid)
        if said != (self.mark, self.boot_id, self.uid):
            return False
        return started_at(manager.manager_pid) == manager.manager_started and self._is_ours(
            manager.manager_pid
        )

    def _is_ours(self, pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}").stat().st_uid == self.uid
        except OSError:
            return False


def started_at(pid: int) -> int | None:
    """When the process of this number started, in ticks since boot; None if none runs."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in ("Z", "X") else int(fields[_STARTED])


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
