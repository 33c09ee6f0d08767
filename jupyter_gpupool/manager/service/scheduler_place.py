"""Where a claim's Dask scheduler runs.

Called by `planning.py` for each claim that starts.
"""

from collections import Counter
from collections.abc import Sequence

from jupyter_gpupool.pool.host import DURABLE, Host, HostPhase
from jupyter_gpupool.pool.ids import HostId
from jupyter_gpupool.scheduling.shape import HeldWorker

from .environments import Barring
from .records import ClaimRecord
from .unit import UnitOfWork


def scheduler_place(unit: UnitOfWork, record: ClaimRecord, workers: Sequence[HeldWorker]) -> HostId:
    """Where it is, else the least burdened durable host that could run it, else with a worker."""
    if record.claim.scheduler is not None:
        return record.claim.scheduler.host_id
    barred = Barring(unit).of(record).hosts
    durable = [h for h in unit.hosts.values() if _could_hold(unit, h) and h.id not in barred]
    if not durable:
        return workers[0].host_id
    places = (other.claim.scheduler for other in unit.placed())
    burden = Counter(place.host_id for place in places if place is not None)
    return min((host.id in record.avoid, burden[host.id], host.id) for host in durable)[-1]


def _could_hold(unit: UnitOfWork, host: Host) -> bool:
    report = unit.reports.get(host.id)
    is_there = host.phase is HostPhase.CONNECTED and (report is None or report.can_start)
    return is_there and DURABLE in host.labels
