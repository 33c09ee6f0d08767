"""Sees schedulers, workers and zygotes that somebody has stopped, by SIGSTOP or with a debugger.

Called by `housekeeping` at each regular look. One that is stopped while it starts would hold its
claim up until the manager's patience ends: it is killed, which counts as a crash, so that another
one is started. One that has come up is its user's to look into: it is left alone, and told of, to
its user with its claim and to everybody, without whose it is, with its host. A zygote is nobody's,
and may owe a child that the agent knows of already the word to go on: it is killed, which the
child takes for its own end.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from jupyter_gpupool.protocol.link import ProcessPhase

from .keys import ProcessKey
from .procfs import ProcessId, ProcessRow, read_row
from .seen import Seen, Stage, phase_of

LOOKS = 5
"""In a row, until it counts: whoever only attaches a debugger for a moment disturbs nobody."""
REASON = "it was stopped, by SIGSTOP or a debugger, while it started"
_STARTS = (ProcessPhase.STARTING, ProcessPhase.RESTARTING)
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A process that has been stopped for a while."""

    key: ProcessKey
    process: ProcessId
    starts: bool


@dataclass(slots=True)
class StoppedWatch:
    """Remembers how long each process has been stopped.

    Args:
        read: Reads a process, None if there is none.
    """

    read: Callable[[int], ProcessRow | None] = read_row
    _looks: dict[ProcessId, int] = field(default_factory=dict)

    def look(self, processes: Iterable[Seen]) -> tuple[Stopped, ...]:
        """Those that were stopped at this look and the ones before it."""
        stopped = [(seen, process) for seen in processes if (process := self._stopped(seen))]
        for_long = self._count([process for _, process in stopped])
        return tuple(
            Stopped(key=seen.key, process=process, starts=phase_of(seen) in _STARTS)
            for seen, process in stopped
            if process in for_long
        )

    def look_at_pids(self, pids: Iterable[int]) -> frozenset[ProcessId]:
        """The same of processes that nobody has a record of; with a watch of their own."""
        rows = [row for pid in pids if (row := self.read(pid)) is not None]
        return self._count([row.id for row in rows if row.is_stopped])

    def _count(self, stopped: Iterable[ProcessId]) -> frozenset[ProcessId]:
        self._looks = {process: self._looks.get(process, 0) + 1 for process in stopped}
        return frozenset(process for process, looks in self._looks.items() if looks >= LOOKS)

    def _stopped(self, seen: Seen) -> ProcessId | None:
        if seen.stage is not Stage.ALIVE or seen.process is None:
            return None
        row = self.read(seen.process.pid)
        is_it = row is not None and row.id == seen.process and row.is_stopped
        return seen.process if is_it else None


def sentence_to_user(found: Stopped) -> str:
    """What the user of a process that is left alone is told, with what to do."""
    pid = found.process.pid
    return (
        f"Its {found.key.role}, process {pid}, was stopped by SIGSTOP or a debugger and does"
        f" nothing until it goes on: kill -CONT {pid} on its host, or release the claim."
    )


def sentence_on(stopped: Iterable[Stopped]) -> str:
    """What the host's people are told of those that are left alone; "" if there are none.

    Whose they are is not for everybody who sees the host.
    """
    names = [f"{found.key.role} {found.process.pid}" for found in stopped if not found.starts]
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    said = ", ".join(names[:_MOST_NAMED]) + more
    return f"Stopped, by SIGSTOP or a debugger, and waiting for SIGCONT: {said}."
