"""Processes as the kernel shows them, apart from what any of ours says about itself.

Called by the running pool to find, signal and clean up, and by the watchers to see who lives.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_STATE, _PARENT, _SESSION, _START = 0, 1, 3, 19
"""Positions in /proc/PID/stat after the command's closing bracket."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process, never mistaken for a later one of the same number."""

    pid: int
    start_ticks: int

    @property
    def lives(self) -> bool:
        """Whether it still runs: a zombie does not."""
        stat = _stat(self.pid)
        return stat is not None and int(stat[_START]) == self.start_ticks and stat[_STATE] != "Z"

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has stopped it."""
        stat = _stat(self.pid)
        return stat is not None and stat[_STATE] == "T"

    @property
    def parent(self) -> int:
        """Its parent's pid, 0 once it is gone."""
        stat = _stat(self.pid)
        return 0 if stat is None else int(stat[_PARENT])

    @property
    def session(self) -> int:
        """Its session's id, 0 once it is gone."""
        stat = _stat(self.pid)
        return 0 if stat is None else int(stat[_SESSION])

    @property
    def command(self) -> str:
        """Its command line, "" once it is gone."""
        return _read(self.pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()

    @property
    def environment(self) -> bytes:
        """The environment it was started with; forked children show their parent's."""
        return _read(self.pid, "environ")

    def send(self, number: signal.Signals) -> None:
        """Signal it, unless it is gone already; never another one of its number."""
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
            try:
                if self.lives:
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)

    def wait_gone(self, deadline_s: float) -> bool:
        """Wait for its end by its pidfd; whether it came in time."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.lives:
                return True
            return bool(select.select([descriptor], [], [], deadline_s)[0])
        finally:
            os.close(descriptor)


def process(pid: int) -> Process | None:
    """The process that has this number now."""
    stat = _stat(pid)
    return None if stat is None else Process(pid, int(stat[_START]))


def everything() -> Iterator[Process]:
    """Every live process of the machine."""
    for entry in Path("/proc").iterdir():
        found = process(int(entry.name)) if entry.name.isdecimal() else None
        if found is not None and found.lives:
            yield found


def carrying(marker: str) -> list[Process]:
    """Every live process whose environment holds this text."""
    wanted = marker.encode()
    return [found for found in everything() if wanted in found.environment]


def in_sessions(sessions: set[int]) -> list[Process]:
    """Every live process of these sessions."""
    return [found for found in everything() if found.session in sessions]


def kill_all(processes: list[Process], deadline_s: float = 5) -> None:
    """Kill these for good, stopped ones too."""
    for found in processes:
        found.send(signal.SIGKILL)
    for found in processes:
        found.wait_gone(deadline_s)


def _stat(pid: int) -> list[str] | None:
    text = _read(pid, "stat").decode(errors="replace")
    return text.rpartition(")")[2].split() or None


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
