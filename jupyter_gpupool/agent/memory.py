"""Ends workers that outgrow their host memory, as a Nanny would. Pure, but for reading /proc.

Called by `host` each second while workers run. Spilling and pausing are the worker's own.
"""

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jupyter_gpupool.pool.units import format_bytes

from .keys import ProcessKey
from .procfs import ProcessId, rss_with_children
from .seen import Seen, Stage
from .stopping import send

KILL_AT = 0.95
"""Of the limit, as distributed's `worker.memory.terminate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgrown:
    """A worker that has to be killed, and why."""

    key: ProcessKey
    process: ProcessId
    reason: str


def outgrown(
    workers: Iterable[Seen], rss_of: Callable[[int], int] = rss_with_children
) -> tuple[Outgrown, ...]:
    """The workers that use too much, with all that they started."""
    return tuple(found for seen in workers if (found := _judge(seen, rss_of)) is not None)


def kill(worker: Outgrown) -> None:
    """Kill it; its end is then counted as a crash."""
    send(worker.process, signal.SIGKILL)


def _judge(seen: Seen, rss_of: Callable[[int], int]) -> Outgrown | None:
    limit = seen.memory_limit_bytes
    if seen.stage is not Stage.ALIVE or seen.process is None or limit is None:
        return None
    used = rss_of(seen.process.pid)
    if used < KILL_AT * limit:
        return None
    reason = f"it used {format_bytes(used)} of its {format_bytes(limit)} of host memory"
    return Outgrown(key=seen.key, process=seen.process, reason=reason)
