"""What one transaction writes: made from a unit of work, written by the writer's thread.

Frozen before it leaves the loop, so that the writer reads nothing that still changes.
"""

from dataclasses import dataclass

from jupyter_gpupool.manager.auth.tokens import TokenRecord
from jupyter_gpupool.manager.service.records import (
    ClaimRecord,
    HostToken,
    OnceRecord,
    PolicyRevision,
    RecordedUse,
    UsageRecord,
    UserRecord,
    WatchRecord,
)
from jupyter_gpupool.pool.event import Event
from jupyter_gpupool.pool.host import Host
from jupyter_gpupool.pool.ids import ClaimId, HostId, UserName
from jupyter_gpupool.pool.lease import Lease
from jupyter_gpupool.pool.reservation import Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Rows to write. `new_…` are inserted, the others updated by their id.

    Attributes:
        leases: Ended ones come first, so that their devices are free for the new ones.
    """

    new_claims: tuple[ClaimRecord, ...] = ()
    claims: tuple[ClaimRecord, ...] = ()
    leases: tuple[Lease, ...] = ()
    new_leases: tuple[Lease, ...] = ()
    new_hosts: tuple[Host, ...] = ()
    hosts: tuple[Host, ...] = ()
    gone_hosts: tuple[HostId, ...] = ()
    new_host_tokens: tuple[HostToken, ...] = ()
    host_tokens: tuple[HostToken, ...] = ()
    gone_host_tokens: tuple[HostId, ...] = ()
    new_tokens: tuple[TokenRecord, ...] = ()
    gone_tokens: tuple[str, ...] = ()
    new_users: tuple[UserRecord, ...] = ()
    users: tuple[UserRecord, ...] = ()
    gone_users: tuple[UserName, ...] = ()
    new_once: tuple[OnceRecord, ...] = ()
    once: tuple[OnceRecord, ...] = ()
    new_usage: tuple[UsageRecord, ...] = ()
    usage: tuple[UsageRecord, ...] = ()
    gone_usage: tuple[str, ...] = ()
    new_reservations: tuple[Reservation, ...] = ()
    gone_reservations: tuple[str, ...] = ()
    new_watches: tuple[WatchRecord, ...] = ()
    watches: tuple[WatchRecord, ...] = ()
    gone_watches: tuple[ClaimId, ...] = ()
    new_recorded: tuple[RecordedUse, ...] = ()
    new_policies: tuple[PolicyRevision, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not any(getattr(self, name) for name in self.__slots__)
