"""Looks into a scheduler once a second and says what goes on there, for nothing busy may seem idle.

Used by `scheduler`. A scheduler that is too busy to look says nothing, which is unknown, not idle.
"""

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any

from jupyter_gpupool.protocol.activity import EVERY_S, Activity

from .claim_scheduler import ClaimScheduler

_MOST_LOOKED_AT = 10_000
_NOBODY = "fire-and-forget"
_WORKERS_OWN = "Client-worker-"


async def probe(scheduler: ClaimScheduler, tell: Callable[[Activity], None]) -> None:
    """Look and tell, for as long as the scheduler lives."""
    while True:
        tell(look(scheduler, time.monotonic()))
        await asyncio.sleep(EVERY_S)


def look(scheduler: Any, now_s: float) -> Activity:
    """What goes on in it.

    Args:
        scheduler: A `ClaimScheduler`.
        now_s: Monotonic.
    """
    workers = scheduler.real_workers
    stuck = _count_stuck(scheduler)
    asked_s = scheduler.asked_s
    return Activity(
        processing=sum(len(state.processing) for state in workers),
        runnable=len(scheduler.queued) + len(scheduler.unrunnable) - stuck,
        stuck=stuck,
        begun=scheduler.n_tasks,
        transfers=sum(_transfers(state) for state in workers),
        runs=scheduler.runs,
        runs_begun=scheduler.runs_begun,
        actors=sum(len(state.actors) for state in workers),
        clients=sum(_is_users(name) for name in scheduler.clients),
        quiet_s=None if asked_s is None else max(0.0, now_s - asked_s),
    )


def _count_stuck(scheduler: Any) -> int:
    """Tasks that no worker of the claim could ever run; of very many, as the first ones are."""
    waiting = scheduler.unrunnable
    if scheduler.running:
        # Those that run now were not good enough.
        return len(waiting)
    first = list(itertools.islice(waiting, _MOST_LOOKED_AT))
    stuck = sum(_is_bound(task) for task in first)
    return len(waiting) if stuck == len(first) else stuck


def _is_bound(task: Any) -> bool:
    """Whether it wants a worker that has gone, or resources, which the claim's workers have not."""
    gone = task.worker_restrictions and not task.loose_restrictions
    return bool(gone or task.resource_restrictions)


def _transfers(state: Any) -> int:
    return int(state.metrics.get("transfer", {}).get("incoming_count", 0))


def _is_users(client: str) -> bool:
    return client != _NOBODY and not client.startswith(_WORKERS_OWN)
