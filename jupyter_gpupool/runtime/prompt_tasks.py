"""Sends a worker its next tasks as soon as it has told of the last ones.

Used by `scheduler`; a plugin of distributed's Scheduler. A scheduler gathers what it has to say to
a worker for 5 ms, a worker what it has to say to the scheduler for 2 ms. A lease's worker has few
threads and gets one task more than it can run: with small tasks it has done all of them before the
5 ms are over, and waits.
"""

from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

_GATHER_FOR_S = 0.002


class PromptTasks(SchedulerPlugin):
    """Shortens how long messages to a worker are gathered."""

    name = "gpupool-prompt-tasks"

    def add_worker(self, scheduler: Any, worker: str) -> None:
        """A worker has registered (distributed calls this)."""
        scheduler.stream_comms[worker].interval = _GATHER_FOR_S
