"""Results that a worker cannot read: the tasks that need one fail and say why, and no others.

Part of `lease_worker` and of `claim_scheduler`. To distributed, one result of a message that cannot
be read spoils all of that message, and tasks that wait for any of them wait for ever.
"""

import time
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from distributed.core import error_message
from distributed.worker_state_machine import (
    GatherDepFailureEvent,
    GatherDepSuccessEvent,
    StateMachineEvent,
)

from .taking import Fetcher, fetch

OPERATION = "gpupool_unread"
"""Worker → scheduler, on their stream: a result that it cannot read."""


class Reader(Fetcher, Protocol):
    """What of distributed's Worker is needed here."""

    def batched_send(self, msg: dict[str, Any]) -> None:
        """Say this to the scheduler."""


async def read_apart(
    reader: Reader, failure: GatherDepFailureEvent, keys: Collection[Any]
) -> StateMachineEvent:
    """Fetch each by itself, so that one that cannot be read holds up no other.

    Args:
        reader: The worker that wanted them.
        failure: What came of fetching them together.
        keys: All of them.

    Returns:
        What was read; the worker asks for the rest again as long as a task waits for it.
    """
    _close_idle(reader.rpc, failure.worker)
    read: dict[Any, Any] = {}
    for key in keys:
        try:
            read |= await fetch(reader, failure.worker, [key])
        except OSError:
            break  # its worker has gone, which is noticed elsewhere
        except Exception as error:  # noqa: BLE001 - what a user's class raises when it is made again
            reader.batched_send(_told(key, error))
    return GatherDepSuccessEvent(
        worker=failure.worker,
        total_nbytes=failure.total_nbytes,
        data=read,
        stimulus_id=f"gpupool-read-apart-{time.time()}",
    )


def fail_dependents(scheduler: Any, key: Any, worker: str, error: Mapping[str, Any]) -> None:
    """Have the tasks fail that wait on this worker for a result that it cannot read.

    Args:
        scheduler: distributed's Scheduler.
        key: The result's.
        worker: Address.
        error: As `error_message` makes it.
    """
    task = scheduler.tasks.get(key)
    waiting = [] if task is None else list(task.dependents)
    for dependent in waiting:
        place = dependent.processing_on
        if place is not None and place.address == worker:
            scheduler.handle_task_erred(
                key=dependent.key,
                worker=worker,
                run_id=dependent.run_id,
                stimulus_id=f"gpupool-unread-{time.time()}",
                **error,
            )


def _close_idle(pool: Any, address: str) -> None:
    """Close connections that nobody uses now: one of them is in the middle of a conversation."""
    for comm in pool.available.pop(address, ()):
        comm.abort()
        pool.semaphore.release()


def _told(key: Any, error: Exception) -> dict[str, Any]:
    cause = f"{type(error).__name__}: {error}"
    sentence = f"The result {key!s} that this task needs cannot be read by its worker: {cause}"
    error_told: dict[str, Any] = {**error_message(RuntimeError(sentence))}
    del error_told["status"]
    return {"op": OPERATION, "key": key, "error": error_told}
