"""What one worker of a claim needs, as a pass takes it.

Called by whoever builds a claim's view. A part of a device that is told in bytes is another share
of each kind of device, and all workers of a claim get the same: so it is settled here for which
kind it asks, by what has room now, and it stays with what it has.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.host import Host, HostPhase
from jupyter_gpupool.pool.ids import DeviceUuid, HostId
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.request import ClaimRequest
from jupyter_gpupool.pool.rules import Sharing
from jupyter_gpupool.pool.units import absolute_bytes, format_bytes
from jupyter_gpupool.pool.worker_devices import WorkerDevices
from jupyter_gpupool.scheduling.shape import WorkerShape

from .environments import Barred
from .records import ClaimRecord
from .standing import View, standings


class Kind(NamedTuple):
    """Devices that are alike."""

    memory_bytes: int
    model: str


class Part(NamedTuple):
    """What is left of a device.

    Attributes:
        left: Thousandths that nobody holds; 0 if it may not be leased now.
        sharers: Those who hold the rest, by the policy's rule on who may share.
    """

    left: int
    sharers: frozenset[str]


class Rooms:
    """What is left of each device, kind by kind; looked at when somebody asks, and then kept."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._parts: dict[Kind, list[tuple[HostId, Part]]] | None = None
        self._sizes: frozenset[tuple[int, str]] | None = None

    def kind_for(self, record: ClaimRecord, shape: WorkerShape) -> Kind | None:
        """The kind a waiting claim asks for: the smallest with room for it now, else the commonest.

        None if no device there is has so much memory as its part.
        """
        needs = record.claim.request.devices
        fitting = [kind for kind in sorted(self._known()) if _fits(kind, needs, shape)]
        me, least = _sharer(self._view, record), max(1, record.claim.bounds.minimum)
        for kind in fitting:
            share = needs.share_of(kind.memory_bytes)
            found = self._open(kind, shape)
            if sum(_workers_in(part, share, me) for part in found) >= least:
                return kind
        most = Counter({k: self._capacity(k, needs, shape) for k in fitting}).most_common(1)
        return most[0][0] if most else None

    def too_large_in_words(self, shape: WorkerShape) -> str:
        """Which device comes nearest, in a sentence, if none has as much memory as is asked for."""
        if self._sizes is None:
            hosts = (h for h in self._view.hosts.values() if h.phase is not HostPhase.LOST)
            self._sizes = frozenset((d.memory_bytes, d.model) for h in hosts for d in h.devices)
        fitting = [size for size in self._sizes if shape.model in size[1].lower()]
        if not fitting or max(fitting)[0] >= shape.device_memory_bytes:
            return ""
        memory_bytes, model = max(fitting)
        return f"The largest such device is {model} with {format_bytes(memory_bytes)}."

    def _capacity(self, kind: Kind, needs: WorkerDevices, shape: WorkerShape) -> int:
        each = WHOLE_DEVICE // needs.share_of(kind.memory_bytes)
        return each * len(self._open(kind, shape))

    def _open(self, kind: Kind, shape: WorkerShape) -> list[Part]:
        out = shape.barred | shape.avoid
        return [part for host_id, part in self._known()[kind] if host_id not in out]

    def _known(self) -> dict[Kind, list[tuple[HostId, Part]]]:
        if self._parts is None:
            self._parts = {}
            for host in self._view.hosts.values():
                if host.phase is not HostPhase.LOST:
                    self._look_at(host, self._parts)
        return self._parts

    def _look_at(self, host: Host, parts: dict[Kind, list[tuple[HostId, Part]]]) -> None:
        sharers: dict[DeviceUuid, set[str]] = {}
        for lease in self._view.leases_on(host.id):
            holder = self._view.claims.get(lease.claim_id)
            for uuid in lease.devices:
                sharers.setdefault(uuid, set()).update(
                    () if holder is None else (_sharer(self._view, holder),)
                )
        for each in standings(self._view, host):
            left = each.left if each.obstacle is None else 0
            part = Part(left, frozenset(sharers.get(each.device.uuid, ())))
            kind = Kind(each.device.memory_bytes, each.device.model.lower())
            parts.setdefault(kind, []).append((host.id, part))


def worker_shape(
    view: View, record: ClaimRecord, barred: Barred, rooms: Rooms | None = None
) -> WorkerShape:
    """What one worker of a claim needs; `rooms` if somebody has looked at devices already."""
    request = record.claim.request
    shape = WorkerShape(
        devices=request.devices.count,
        share=request.devices.share,
        cpu=request.cpu,
        memory_bytes=request.options.memory_limit_bytes or 0,
        model=request.model.lower(),
        device_memory_bytes=request.memory_bytes,
        barred=barred.hosts,
    )
    if shape.devices > 1:
        shape = shape._replace(barred=shape.barred | _without_gpus(view.hosts.values()))
    if request.devices.memory_bytes:
        shape = _held_shape(view, record, shape) or _asked_shape(
            record, shape, rooms or Rooms(view)
        )
    # A host where it failed is better than none: the fault may have been the claim's own.
    avoid = record.avoid if record.avoid and _has_others(view, record, shape) else frozenset()
    return shape._replace(avoid=avoid)


def check_pools(view: View, request: ClaimRequest) -> None:
    """Refuse RMM pools that are larger than the part of any device there is.

    Raises:
        BadRequest: If one is; hosts that come later may have larger devices.
    """
    share, model = request.devices.share, request.model.lower()
    devices = (d for h in view.hosts.values() if h.phase is not HostPhase.LOST for d in h.devices)
    sizes = [device.memory_bytes for device in devices if model in device.model.lower()]
    if not share or not sizes:
        return
    part_bytes = max(sizes) * share // WHOLE_DEVICE
    for name in ("rmm_pool_size", "rmm_maximum_pool_size"):
        size_bytes = absolute_bytes(getattr(request.options, name))
        if size_bytes is not None and size_bytes > part_bytes:
            raise BadRequest(
                f"{name} is {format_bytes(size_bytes)}, and {share / WHOLE_DEVICE:g} of the largest"
                f" device is {format_bytes(part_bytes)}.",
                field=name,
                hint="Ask for a larger part, or for a smaller pool.",
            )


def _asked_shape(record: ClaimRecord, shape: WorkerShape, rooms: Rooms) -> WorkerShape:
    needs, kind = record.claim.request.devices, rooms.kind_for(record, shape)
    if kind is None:
        # What it asks for is said to be never possible, with this size.
        least = max(shape.device_memory_bytes, needs.memory_bytes)
        return shape._replace(devices=1, share=0, device_memory_bytes=least)
    return _shape_on(shape, needs.share_of(kind.memory_bytes), kind)


def _held_shape(view: View, record: ClaimRecord, shape: WorkerShape) -> WorkerShape | None:
    """The shape of a claim that has workers, or is promised some, by one of those."""
    needs = record.claim.request.devices
    for lease in view.leases_of(record.claim.id):
        device = _device(view, lease.host_id, lease.device)
        if device is not None:
            return _shape_on(shape, lease.share, _kind_of(device))
    for worker in record.promised:
        device = _device(view, worker.host_id, worker.devices[0])
        if device is not None:
            return _shape_on(shape, needs.share_of(device.memory_bytes), _kind_of(device))
    return None


def _shape_on(shape: WorkerShape, share: int, kind: Kind) -> WorkerShape:
    is_whole = share >= WHOLE_DEVICE
    return shape._replace(
        devices=int(is_whole),
        share=0 if is_whole else share,
        model=kind.model,
        device_memory_bytes=kind.memory_bytes,
    )


def _fits(kind: Kind, needs: WorkerDevices, shape: WorkerShape) -> bool:
    least = max(needs.memory_bytes, shape.device_memory_bytes)
    return kind.memory_bytes >= least and shape.model in kind.model


def _workers_in(part: Part, share: int, me: str) -> int:
    if part.left == WHOLE_DEVICE or part.sharers <= {me}:
        return part.left // share
    return 0


def _sharer(view: View, record: ClaimRecord) -> str:
    """With whom a claim may share a device, as the ledger of a pass names it."""
    match view.policy.policy.rules.sharing:
        case Sharing.SAME_USER:
            return record.claim.owner
        case Sharing.SAME_QUEUE:
            queue = view.policy.queue_of(record.claim)
            return "" if queue is None else queue.name
        case Sharing.ANYONE:
            return ""


def _kind_of(device: Device) -> Kind:
    return Kind(device.memory_bytes, device.model.lower())


def _device(view: View, host_id: HostId, uuid: DeviceUuid) -> Device | None:
    host = view.hosts.get(host_id)
    devices = () if host is None else host.devices
    return next((device for device in devices if device.uuid == uuid), None)


def _without_gpus(hosts: Iterable[Host]) -> frozenset[HostId]:
    """Hosts of MIG instances alone: CUDA shows a process one of them, never several."""
    return frozenset(
        host.id
        for host in hosts
        if host.devices and all(device.parent is not None for device in host.devices)
    )


def _has_others(view: View, record: ClaimRecord, shape: WorkerShape) -> bool:
    """Whether hosts on which it has not failed could serve its minimum."""
    least, out = max(1, record.claim.bounds.minimum), record.avoid | shape.barred
    fitting = 0
    for host in view.hosts.values():
        if host.phase is HostPhase.CONNECTED and host.id not in out:
            fitting += workers_on(shape, sum(would_do(shape, d) for d in host.devices))
        if fitting >= least:
            return True
    return False


def workers_on(shape: WorkerShape, devices: int) -> int:
    """How many workers fit on so many free devices of one host."""
    if shape.share:
        return devices * (WHOLE_DEVICE // shape.share)
    return devices // max(1, shape.devices)


def would_do(shape: WorkerShape, device: Device) -> bool:
    """Whether a device would do for a worker of this shape, free or not."""
    has_memory = device.memory_bytes >= shape.device_memory_bytes
    return has_memory and shape.model in device.model.lower()
