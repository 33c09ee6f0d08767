"""The pool counted again, in the simplest way there is: what the laws hold plans to.

Nothing here asks the engine: no bits, no caches, no order.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId
from jupyter_gpupool.pool.rules import Sharing
from jupyter_gpupool.scheduling.amounts import WHOLE_DEVICE
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.shape import DeviceView, HeldWorker, HostShape


def workers_of(claim: ClaimView) -> tuple[HeldWorker, ...]:
    """What a claim holds and what it is promised."""
    return (*claim.held, *claim.promised)


def has(claim: ClaimView) -> int:
    """How many workers that are."""
    return len(workers_of(claim))


def needs(claim: ClaimView) -> int:
    """How many workers it lacks of its minimum, else 1 if it would take another."""
    lacking = claim.minimum - has(claim)
    return lacking if lacking > 0 else int(has(claim) < claim.maximum)


def waiting(view: PoolView) -> tuple[ClaimView, ...]:
    """The claims that lack something and for whom nothing is being freed."""
    return tuple(claim for claim in view.claims if needs(claim) and not claim.promised)


def by_id(view: PoolView) -> dict[ClaimId, ClaimView]:
    """The claims by their ids."""
    return {claim.id: claim for claim in view.claims}


def held_by_queue(view: PoolView, *, firm: bool = False) -> Counter[str]:
    """Thousandths of devices that the claims below each queue hold, or the firm ones of them."""
    held = Counter[str]()
    for claim in view.claims:
        if claim.firm or not firm:
            for queue in view.tree.path(claim.queue):
                held[queue] += has(claim) * claim.worker.thousandths
    return held


def sharer(view: PoolView, claim: ClaimView) -> str:
    """With whom a claim may share a device."""
    match view.rules.sharing:
        case Sharing.SAME_USER:
            return claim.owner
        case Sharing.SAME_QUEUE:
            leaf = view.tree.queues[claim.queue]
            return claim.queue if leaf.user is None else leaf.parent or ""
        case Sharing.ANYONE:
            return ""


def on_devices(view: PoolView) -> dict[DeviceUuid, list[ClaimView]]:
    """Who holds or is promised each device, once for each worker on it."""
    found: dict[DeviceUuid, list[ClaimView]] = defaultdict(list)
    for claim in view.claims:
        for worker in workers_of(claim):
            for uuid in worker.devices:
                found[uuid].append(claim)
    return found


def is_sound(view: PoolView, holders: list[ClaimView]) -> bool:
    """Whether these workers may be on one device together."""
    if len(holders) == 1:
        return True
    parts = sum(claim.worker.share or WHOLE_DEVICE for claim in holders)
    return parts <= WHOLE_DEVICE and len({sharer(view, claim) for claim in holders}) == 1


def double_booked(view: PoolView) -> set[DeviceUuid]:
    """Devices of which more is held than there is, or by claims that may not share."""
    return {uuid for uuid, claims in on_devices(view).items() if not is_sound(view, claims)}


def used_on_host(view: PoolView) -> tuple[Counter[HostId], Counter[HostId]]:
    """Thousandths of cores, and bytes, that are held on each host."""
    cpu, memory = Counter[HostId](), Counter[HostId]()
    for claim in view.claims:
        for worker in workers_of(claim):
            cpu[worker.host_id] += claim.worker.cpu
            memory[worker.host_id] += claim.worker.memory_bytes
    return cpu, memory


def over_limit(view: PoolView, claim: ClaimView, count: int) -> set[str]:
    """The queues whose limits so many more workers of a claim would exceed."""
    held, more = held_by_queue(view), count * claim.worker.thousandths
    path = view.tree.path(claim.queue)
    return {q for q in path if more and held[q] + more > view.tree.queues[q].limit[0]}


def over_guarantee(view: PoolView, claim: ClaimView, count: int) -> set[str]:
    """The queues whose guarantees so many more workers would exceed, if the claim is firm."""
    held, more = held_by_queue(view, firm=True), count * claim.worker.thousandths
    path = [q for q in view.tree.path(claim.queue) if view.tree.queues[q].user is None]
    return {
        q for q in path if claim.firm and more and held[q] + more > view.tree.queues[q].guarantee[0]
    }


def may_have(view: PoolView, claim: ClaimView, count: int) -> bool:
    """Whether limits and guarantees allow so many more workers."""
    return not over_limit(view, claim, count) and not over_guarantee(view, claim, count)


def room(view: PoolView, claim: ClaimView) -> int:
    """How many more workers of a claim's shape fit on what is free now."""
    return sum(_room_on(view, host, claim) for host in view.hosts if _accepts(host, claim))


def _accepts(host: HostShape, claim: ClaimView) -> bool:
    shape = claim.worker
    barred = shape.barred | shape.avoid
    return host.takes_more and shape.labels <= host.labels and host.id not in barred


def _room_on(view: PoolView, host: HostShape, claim: ClaimView) -> int:
    shape, holders = claim.worker, on_devices(view)
    kinds = Counter((d.model, d.memory_bytes) for d in _fitting(host, claim) if not holders[d.uuid])
    if shape.devices:
        most = sum(free // shape.devices for free in kinds.values())
    elif shape.share:
        most = kinds.total() * (WHOLE_DEVICE // shape.share)
        most += sum(_parts(view, claim, holders[d.uuid]) for d in _fitting(host, claim))
    else:
        most = 1 << 30
    return min(most, *_of_host(view, host, claim))


def _fitting(host: HostShape, claim: ClaimView) -> Iterator[DeviceView]:
    shape = claim.worker
    for device in host.devices:
        large_enough = device.memory_bytes >= shape.device_memory_bytes
        if device.may_be_leased and shape.model in device.model.lower() and large_enough:
            yield device


def _parts(view: PoolView, claim: ClaimView, holders: list[ClaimView]) -> int:
    """How many parts are left for a claim of a device that others share."""
    if not holders or any(other.worker.devices for other in holders):
        return 0
    if any(sharer(view, other) != sharer(view, claim) for other in holders):
        return 0
    left = WHOLE_DEVICE - sum(other.worker.share for other in holders)
    return left // claim.worker.share


def _of_host(view: PoolView, host: HostShape, claim: ClaimView) -> Iterator[int]:
    cpu, memory = used_on_host(view)
    if host.cpu and claim.worker.cpu:
        yield max(0, host.cpu - cpu[host.id]) // claim.worker.cpu
    if host.memory_bytes and claim.worker.memory_bytes:
        yield max(0, host.memory_bytes - memory[host.id]) // claim.worker.memory_bytes
    yield 1 << 30


def free_devices(view: PoolView) -> int:
    """How many devices nobody holds, whatever their kind, that may be leased."""
    holders = on_devices(view)
    hosts = (host for host in view.hosts if host.takes_more)
    return sum(d.may_be_leased and not holders[d.uuid] for host in hosts for d in host.devices)
