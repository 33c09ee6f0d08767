"""Which minimum runtime protects a claim of one queue against one of another, or of the same."""

from collections.abc import Mapping
from typing import Any

from cases.outcome import Outcome, compared

from jupyter_gpupool.scheduling.amounts import DEVICES, NO_LIMIT
from jupyter_gpupool.scheduling.protection import protected_s
from jupyter_gpupool.scheduling.queue_checks import grow
from jupyter_gpupool.scheduling.queues import Queue


def run(case: Mapping[str, Any]) -> Outcome:
    """Resolve, and compare the seconds."""
    given = case["input"]
    tree = grow((DEVICES,), [_queue_of(queue) for queue in given["tree"]])
    found = protected_s(
        tree,
        claimant=given["reclaimer"],
        victim=given["victim"],
        default_s=given.get("default_s", 0),
    )
    return compared(found=found, expected=case["expect"]["protected_seconds"])


def _queue_of(queue: Mapping[str, Any]) -> Queue:
    return Queue(
        name=queue["name"],
        parent=queue.get("parent"),
        guarantee=(0,),
        limit=(NO_LIMIT,),
        reclaim_min_runtime_s=queue.get("reclaim_min_s"),
        own_min_runtime_s=queue.get("preempt_min_s"),
    )
