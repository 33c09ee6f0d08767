"""A control group a process, where this host lets the agent make one: nothing can leave it.

Called by `starting`, `carry_out` and `sweeping`. Without the right to make groups the agent does
without, for the other marks in `footprint` find all but what hides on purpose.
"""

import os
from pathlib import Path

from .keys import ProcessKey

_MOUNT = Path("/sys/fs/cgroup")


class ControlGroups:
    """The groups of one host's agent."""

    def __init__(self, host_id: str, *, mount: Path = _MOUNT) -> None:
        self._root = _base(mount) / f"gpupool-{host_id}"
        self._is_root = os.getuid() == 0
        self._may_make = self._is_root

    def folder(self, key: ProcessKey) -> Path | None:
        """Where a process's group is or would be; None if this agent never makes any."""
        return self._root / f"{key.claim_id}.{key.start}.{key.mark}" if self._is_root else None

    def put(self, key: ProcessKey, pid: int) -> None:
        """Put a process, and all it will start, into a group of its own. May take milliseconds."""
        folder = self.folder(key)
        if folder is None or not self._may_make:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.procs").write_text(str(pid))
        except (ProcessLookupError, FileNotFoundError):
            # It ended first, and its group may have been tidied up.
            return
        except OSError:
            # Those that were made before are still looked into.
            self._may_make = False

    def remove(self, key: ProcessKey) -> None:
        """Remove a group that nothing is in any more."""
        folder = self.folder(key)
        if folder is None:
            return
        try:
            for inner in sorted(folder.glob("**/"), reverse=True):
                inner.rmdir()
        except OSError:
            # Something entered it just now; the next removal finds it empty.
            return

    def tidy(self) -> None:
        """Remove every group that nothing is in any more, and then the folder of all groups."""
        if not self._root.is_dir():
            return
        for folder in (*self._root.glob("*/"), self._root):
            try:
                folder.rmdir()
            except OSError:
                # Processes live in it.
                continue


def pids_in(folder: Path) -> frozenset[int]:
    """All pids in a group and the groups inside it."""
    found: set[int] = set()
    for path in folder.glob("**/cgroup.procs"):
        try:
            found.update(map(int, path.read_text().split()))
        except OSError:
            continue
    return frozenset(found)


def _base(mount: Path) -> Path:
    """The agent's own group, for what ends the agent's group (a Slurm job, say) ends these too.

    On version 1 that is the freezer's hierarchy, which limits nothing.
    """
    lines = [line.split(":", 2) for line in _read("/proc/self/cgroup").splitlines()]
    if (mount / "cgroup.controllers").exists():
        own = next((path for number, _, path in lines if number == "0"), "/")
        return mount / own.lstrip("/")
    own = next((path for _, names, path in lines if "freezer" in names.split(",")), "/")
    return mount / "freezer" / own.lstrip("/")


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
