"""Has a scheduler's workers begin no task, and lets them go on again.

Used by `hibernation` while results move.
"""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from distributed.core import Status

from .claim_scheduler import ClaimScheduler


class Standstill:
    """The workers of one scheduler that stand still."""

    def __init__(self, scheduler: ClaimScheduler) -> None:
        self._scheduler: Any = scheduler
        self._paused: set[str] = set()

    def begin(self) -> None:
        """Pause those that do not stand still yet; what runs there goes on running."""
        for state in self._scheduler.real_workers:
            if state.status in (Status.running, Status.paused):
                self._paused.add(state.address)
                # As it retires: it begins no task, and still sends as many results as it can.
                self._set_status(state, Status.closing_gracefully)

    def end(self) -> None:
        """Let those that are still there go on."""
        for address in self._paused:
            if (state := self._scheduler.workers.get(address)) is not None:
                self._set_status(state, Status.running)
        self._paused.clear()

    def _set_status(self, state: Any, status: Status) -> None:
        stimulus_id = f"gpupool-standstill-{time.time()}"
        if status is not Status.running:
            # At once, so that nothing is sent there; a worker that wakes up says so itself.
            self._scheduler.handle_worker_status_change(status, state, stimulus_id)
        self._scheduler.stream_comms[state.address].send(
            {"op": "worker-status-change", "status": status.name, "stimulus_id": stimulus_id}
        )


@contextlib.contextmanager
def copies_left_alone(scheduler: Any) -> Iterator[None]:
    """Keep distributed from removing one of two copies: it might choose the new one."""
    manager = scheduler.extensions.get("amm")
    if manager is None or not manager.running:
        yield
        return
    manager.stop()
    try:
        yield
    finally:
        manager.start()
