"""Ends workers that outgrow their host memory, as a Nanny would, with all that they started.

Called by `host` each second while workers run. Spilling and pausing are the worker's own. Resident
memory is cheap to read and counts a page once for each process that shares it, as the forks of a
data loader do: it only says whom to look at closely.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from jupyter_gpupool.pool.units import format_bytes

from .keys import ProcessKey
from .procfs import ProcessId, pss_with_children, read_row, rss_with_children
from .seen import Seen, Stage
from .stopping import send

KILL_AT = 0.95
"""Of the limit, as distributed's `worker.memory.terminate`."""
_PAUSE_AFTER_LOOK = 20
"""Times as long as a close look took, so that looking takes a twentieth of the time."""
_LONGEST_PAUSE_S = 30.0
_MOST_REMEMBERED = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgrown:
    """A worker that has to be killed, and why."""

    key: ProcessKey
    process: ProcessId
    reason: str


def _in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True, name="close look").start()


class CloseLook:
    """Reads what a process and its children really use: beside the loop, and not too often.

    That takes seconds for a large one. Until there is an answer, it counts as it did before; but
    never less than it has resident itself, which is what a Nanny would count.
    """

    def __init__(
        self,
        read: Callable[[int], int] = pss_with_children,
        clock: Callable[[], float] = time.monotonic,
        start: Callable[[Callable[[], None]], None] = _in_thread,
    ) -> None:
        self._read = read
        self._clock = clock
        self._start = start
        self._looking_at: set[int] = set()
        self._last: dict[int, tuple[int, float]] = {}

    def __call__(self, pid: int) -> int:
        """Bytes that it uses, as far as is known."""
        _, until_s = self._last.get(pid, (0, 0.0))
        if pid not in self._looking_at and self._clock() >= until_s:
            self._looking_at.add(pid)
            self._start(partial(self._look, pid))
        used, _ = self._last.get(pid, (0, 0.0))
        row = read_row(pid)
        return max(used, row.rss_bytes if row is not None else 0)

    def _look(self, pid: int) -> None:
        began_s = self._clock()
        try:
            used, now_s = self._read(pid), self._clock()
        finally:
            self._looking_at.discard(pid)
        if len(self._last) >= _MOST_REMEMBERED:
            self._last.clear()
        pause_s = min(_PAUSE_AFTER_LOOK * (now_s - began_s), _LONGEST_PAUSE_S)
        self._last[pid] = (used, now_s + pause_s)


_look_closely = CloseLook()


def outgrown(
    workers: Iterable[Seen],
    rss_of: Callable[[int], int] = rss_with_children,
    used_by: Callable[[int], int] = _look_closely,
) -> tuple[Outgrown, ...]:
    """The workers that use too much, with all that they started."""
    judged = (_judge(seen, rss_of, used_by) for seen in workers)
    return tuple(found for found in judged if found is not None)


def kill(worker: Outgrown) -> None:
    """Kill it; its end is then counted as a crash."""
    send(worker.process, signal.SIGKILL)


def _judge(
    seen: Seen, rss_of: Callable[[int], int], used_by: Callable[[int], int]
) -> Outgrown | None:
    limit = seen.memory_limit_bytes
    if seen.stage is not Stage.ALIVE or seen.process is None or limit is None:
        return None
    if rss_of(seen.process.pid) < KILL_AT * limit:
        return None
    used = used_by(seen.process.pid)
    if used < KILL_AT * limit:
        return None
    reason = f"it used {format_bytes(used)} of its {format_bytes(limit)} of host memory"
    return Outgrown(key=seen.key, process=seen.process, reason=reason)
