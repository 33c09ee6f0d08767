"""What free devices could do for claims, asked without a whole pass.

Called by `planning.py` to leave out passes that could grant nothing.
"""

from collections.abc import Iterable, Mapping, Sequence

from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.scheduling.shape import WorkerShape

from .environments import Barring
from .records import ClaimRecord
from .standing import Standing, View, free_devices, parts_free
from .worker_shapes import Rooms, worker_shape, workers_on, would_do


def could_any_start(view: View, records: Iterable[ClaimRecord]) -> bool:
    """Whether one of these waiting claims could start on what is free, if it were alone."""
    free = free_devices(view)
    parts = parts_free(view)
    if not any(free.values()) and not any(parts.values()):
        return False
    barring, rooms = Barring(view), Rooms(view)
    return any(
        _could_start(record, worker_shape(view, record, barring.of(record), rooms), free, parts)
        for record in records
    )


def _could_start(
    record: ClaimRecord,
    shape: WorkerShape,
    free: Mapping[HostId, Sequence[Device]],
    parts: Mapping[HostId, Sequence[Standing]],
) -> bool:
    out, least = shape.avoid | shape.barred, max(1, record.claim.bounds.minimum)
    fitting = 0
    for host_id, devices in free.items():
        if host_id not in out:
            fitting += workers_on(shape, sum(would_do(shape, device) for device in devices))
            # With whom it may share is left to the pass: this only spares it work in vain.
            shared = (p for p in parts.get(host_id, ()) if would_do(shape, p.device))
            fitting += sum(p.left // shape.share for p in shared) if shape.share else 0
        if fitting >= least:
            return True
    return False
