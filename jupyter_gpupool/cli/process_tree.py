"""Processes as Linux lists them: what the demo started, and whether any of it is left."""

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Seen:
    """A process, told from a later one of the same number by when it started."""

    pid: int
    start_ticks: int
    command: str = ""


@dataclass(frozen=True, slots=True)
class _Stat:
    seen: Seen
    parent: int
    is_zombie: bool


def tree(root: int) -> set[Seen]:
    """A process and all that descend from it now."""
    stats = _all()
    children: dict[int, list[_Stat]] = {}
    for stat in stats.values():
        children.setdefault(stat.parent, []).append(stat)
    found: set[Seen] = set()
    todo = [stats[root]] if root in stats else []
    while todo:
        stat = todo.pop()
        found.add(stat.seen)
        todo.extend(children.get(stat.seen.pid, ()))
    return found


def alive(seen: Iterable[Seen]) -> set[Seen]:
    """Those that still run."""
    return {process for process in seen if _is_alive(process)}


def kill(processes: Iterable[Seen]) -> None:
    """End them at once."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)


def _is_alive(process: Seen) -> bool:
    stat = _stat(process.pid)
    return stat is not None and stat.seen == process and not stat.is_zombie


def _all() -> dict[int, _Stat]:
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return {pid: stat for pid in pids if (stat := _stat(pid)) is not None}


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    before, _, after = text.rpartition(")")
    fields = after.split()
    seen = Seen(pid, int(fields[19]), before.partition("(")[2])
    return _Stat(seen=seen, parent=int(fields[1]), is_zombie=fields[0] in ("Z", "X"))
