"""Whom a unit of work concerns: the claims and hosts that have to hear of it once it is durable.

Asked by `service` before a unit is merged, while the books are still as they were.
"""

from jupyter_gpupool.pool.ids import ClaimId, HostId

from .books import Books
from .unit import UnitOfWork


def claims_concerned(unit: UnitOfWork) -> set[ClaimId]:
    """Those that were changed, whose leases were, or who failed to start."""
    leases = [*unit.leases.changed.values(), *unit.ended_leases.values()]
    of_leases = {lease.claim_id for lease in leases if lease is not None}
    return of_leases | unit.claims.changed.keys() | unit.failures.changed.keys()


def hosts_concerned(unit: UnitOfWork, books: Books) -> set[HostId]:
    """Those that are there and were changed, or on which a claim concerned has or had something."""
    changed = {host_id for host_id, host in unit.hosts.changed.items() if host is not None}
    concerned = set(changed)
    for claim_id in claims_concerned(unit):
        for view in (unit, books):
            record = view.claims.get(claim_id)
            if record is not None and record.claim.scheduler is not None:
                concerned.add(record.claim.scheduler.host_id)
            concerned |= {lease.host_id for lease in view.leases_of(claim_id)}
    return concerned & (changed | books.hosts.keys()) - (unit.hosts.changed.keys() - changed)
