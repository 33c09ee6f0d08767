"""What free devices could do for claims, asked without a whole pass.

Called by `planning.py` to leave out passes that could grant nothing.
"""

from collections.abc import Iterable
from itertools import islice

from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.ids import HostId

from .claim_views import worker_shape
from .environments import Barring
from .records import ClaimRecord
from .standing import View, free_devices


def could_any_start(view: View, records: Iterable[ClaimRecord]) -> bool:
    """Whether one of these waiting claims could start on what is free, if it were alone."""
    free = [(host_id, d) for host_id, found in free_devices(view).items() for d in found]
    if not free:
        return False
    barring = Barring(view)
    return any(_could_start(view, record, barring, free) for record in records)


def _could_start(
    view: View, record: ClaimRecord, barring: Barring, free: Iterable[tuple[HostId, Device]]
) -> bool:
    shape = worker_shape(view, record, barring.of(record))
    out, least = shape.avoid | shape.barred, max(1, record.claim.bounds.minimum)
    fitting = (
        True
        for host_id, device in free
        if host_id not in out
        and shape.model in device.model.lower()
        and device.memory_bytes >= shape.device_memory_bytes
    )
    return len(list(islice(fitting, least))) == least
