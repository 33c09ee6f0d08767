"""What hosts the pool could use, and which it could do without.

Route: GET /api/v1/demand → DemandView, admin.
"""

from datetime import datetime

from jupyter_gpupool.pool.ids import ClaimId, HostId

from .bodies import View


class HostsWantedView(View):
    """So many hosts of one shape would start these claims.

    Attributes:
        shape: Its devices, as "4 × NVIDIA A100 with 80 GiB".
        cpus: Cores of one; 0 if they are not counted.
    """

    shape: str
    count: int
    devices: int
    cpus: int
    memory_bytes: int
    labels: tuple[str, ...] = ()
    claims: tuple[ClaimId, ...] = ()


class SpareHostView(View):
    """A host that may go: empty for its keep time, and of no use to anybody who waits."""

    id: HostId
    name: str
    empty_since: datetime


class DemandView(View):
    """What providers should bring, and may take away."""

    wanted: tuple[HostsWantedView, ...] = ()
    may_go: tuple[SpareHostView, ...] = ()
