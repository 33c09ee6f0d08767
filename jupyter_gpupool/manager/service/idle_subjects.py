"""What rules on idle claims ask about a claim, made from the books.

Called by `idle_watching` for each sample, and when people ask which rule is for a claim.
"""

from collections.abc import Iterator

from jupyter_gpupool.pool.idle_match import OwnWish, Subject
from jupyter_gpupool.pool.lease import WHOLE_DEVICE, Lease
from jupyter_gpupool.pool.request import ClaimRequest
from jupyter_gpupool.pool.units import plural
from jupyter_gpupool.scheduling.idle_own_words import Held

from .kept_results import keeping_of_claim
from .kept_room import no_room
from .records import ClaimRecord
from .standing import View


def hibernation_possible(view: View, record: ClaimRecord) -> bool:
    """Whether a claim's results can be kept without its devices, as far as is known.

    A claim that is warned is asked beforehand: what cannot be kept is known then, and what its rule
    does instead is said in a warning of its own.
    """
    if record.claim.awaits_results:
        return False
    keeping = keeping_of_claim(view, record)
    if keeping is None or not keeping.surveyed:
        return True
    return not keeping.unkept_count and not no_room(view, record, keeping.result_bytes)


def subject_of(view: View, record: ClaimRecord, leases: tuple[Lease, ...]) -> Subject:
    """A claim as rules see it."""
    claim = record.claim
    counting = sum(lease.counts for lease in leases)
    return Subject(
        user=claim.owner,
        queues=_queues(view, record),
        models=tuple(sorted(set(models_of(view, leases)))),
        priority=claim.request.priority,
        devices=sum(lease.thousandths for lease in leases),
        may_hibernate=hibernation_possible(view, record),
        may_shrink=counting > max(1, claim.bounds.minimum),
        wish=own_wish(claim.request),
    )


def own_wish(request: ClaimRequest) -> OwnWish:
    """What its user would have done with a claim when it is idle."""
    after_s = None if request.idle_after is None else request.idle_after.total_seconds()
    return OwnWish(action=request.on_idle, after_s=after_s)


def models_of(view: View, leases: tuple[Lease, ...]) -> Iterator[str]:
    """The model of each device that these leases hold."""
    for lease in leases:
        host = view.hosts.get(lease.host_id)
        devices = () if host is None else host.devices
        yield from (device.model for device in devices if device.uuid in lease.devices)


def held_of(view: View, leases: tuple[Lease, ...]) -> Held:
    """What a claim holds with these leases, as its user calls it."""
    count = sum(lease.thousandths for lease in leases) / WHOLE_DEVICE
    kinds = set(models_of(view, leases))
    what = f"{count:g} {kinds.pop()}" if len(kinds) == 1 else plural(round(count), "device")
    return Held(devices=what.removeprefix("1 "), several=count > 1)


def is_protected(view: View, record: ClaimRecord, held_s: float) -> bool:
    """Whether a claim that has run for so long is inside the minimum runtime of its queue."""
    queue, tree = view.policy.queue_of(record.claim), view.policy.tree
    if queue is None:
        return False
    settings = (tree.queues[name].reclaim_min_runtime_s for name in tree.path(queue.name))
    return held_s < next((seconds for seconds in settings if seconds is not None), 0.0)


def _queues(view: View, record: ClaimRecord) -> tuple[str, ...]:
    queue = view.policy.queue_of(record.claim)
    return () if queue is None else tuple(view.policy.tree.path(queue.name))
