"""How long a claim keeps its leases, whoever wants them.

Source: NVIDIA KAI-Scheduler, docs/developer/designs/min-runtime. A setting speaks to its queue's
siblings alone, so each department decides on its own teams and no further.
"""

from collections.abc import Iterable

from jupyter_gpupool.scheduling.queues import QueueTree


def protected_s(tree: QueueTree, *, claimant: str, victim: str, default_s: float = 0.0) -> float:
    """Find how many seconds from its grant on a lease of `victim` is out of reach for `claimant`.

    Between queues it is the setting of the victim's side just below their lowest common ancestor,
    else the nearest one above that. Within one queue it is the nearest from the queue on up.

    Args:
        tree: Holds both.
        claimant: The queue of the claim that wants the lease.
        victim: The queue of the claim that has it.
        default_s: What holds where no queue says anything.

    Raises:
        KeyError: A queue is unknown.
    """
    if claimant == victim:
        own = (tree.queues[name].own_min_runtime_s for name in tree.path(victim))
        return _first_set(own, default_s)
    side = tree.below(_meeting_point(tree, claimant, victim), victim)
    above = (tree.queues[name].reclaim_min_runtime_s for name in tree.path(side))
    return _first_set(above, default_s)


def _meeting_point(tree: QueueTree, claimant: str, victim: str) -> str | None:
    meet = tree.common_ancestor(claimant, victim)
    # A claim of an inner queue against one below it: the two meet one level up.
    return tree.queues[meet].parent if meet == victim else meet


def _first_set(settings: Iterable[float | None], default_s: float) -> float:
    return next((seconds for seconds in settings if seconds is not None), default_s)
