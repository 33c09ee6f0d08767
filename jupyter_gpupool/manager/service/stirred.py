"""What may look otherwise to a pass than before: told by a unit of work, noted by the books.

So that a pass over a large pool looks at what has happened and at nothing else. Whatever a pass
sees of claims and hosts hangs on something that is named here.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.host import Host
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.protocol.link import HostReport

if TYPE_CHECKING:
    from .unit import UnitOfWork

_MOST_NOTES = 1000


@dataclass(slots=True)
class Stirred:
    """What to look at anew; in order, for so the books have it.

    Attributes:
        claims: Their own records, leases or failures have changed.
        hosts: So have they, or what they say of their workers.
        all_claims: Something has changed that each claim may depend on: which hosts there are,
            whether they answer, what devices and which environments they have.
    """

    claims: dict[ClaimId, None] = field(default_factory=dict)
    hosts: dict[HostId, None] = field(default_factory=dict)
    all_claims: bool = False

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.claims or self.hosts or self.all_claims)

    def add(self, other: "Stirred") -> None:
        """Let all that another names be named here."""
        self.claims.update(other.claims)
        self.hosts.update(other.hosts)
        self.all_claims |= other.all_claims


class Journal:
    """What each of the last commits has stirred, for all who remember what they saw before it.

    Attributes:
        at: How many there were so far.
    """

    def __init__(self) -> None:
        self.at = 0
        self._notes: deque[Stirred] = deque(maxlen=_MOST_NOTES)

    def note(self, stirred: Stirred) -> None:
        """One more commit."""
        if stirred:
            self.at += 1
            self._notes.append(stirred)

    def since(self, at: int) -> Stirred | None:
        """All that was stirred since there were so many; None if that is too long ago to tell."""
        missed, found = self.at - at, Stirred()
        if missed > len(self._notes):
            return None
        for stirred in islice(self._notes, len(self._notes) - missed, None):
            found.add(stirred)
        return found


def stirred_by(unit: "UnitOfWork") -> Stirred:
    """What a unit changes, as seen from what lies below it."""
    below = unit.below
    leases = [*unit.leases.changed.values(), *unit.ended_leases.values()]
    held = [lease for lease in leases if lease is not None]
    found = Stirred(
        claims=dict.fromkeys(
            (*unit.claims.changed, *unit.failures.changed, *(lease.claim_id for lease in held))
        ),
        hosts=dict.fromkeys((*unit.hosts.changed, *(lease.host_id for lease in held))),
        all_claims=unit.agent_problem != below.agent_problem,
    )
    for host_id, host in unit.hosts.changed.items():
        found.all_claims |= _as_claims_see(host) != _as_claims_see(below.hosts.get(host_id))
    for host_id, report in unit.reports.changed.items():
        _note_report(found, host_id, report, below.reports.get(host_id))
    return found


def _note_report(
    found: Stirred, host_id: HostId, now: HostReport | None, before: HostReport | None
) -> None:
    """Hosts report every second, and most often nothing new."""
    if _said_of_workers(now) != _said_of_workers(before):
        found.hosts[host_id] = None
    found.all_claims |= _offers(now) != _offers(before)


def _as_claims_see(host: Host | None) -> tuple[object, ...]:
    return () if host is None else (host.phase, host.name, host.labels, host.devices)


def _said_of_workers(report: HostReport | None) -> tuple[object, ...]:
    if report is None:
        return ()
    workers = report.workers
    return report.can_start, [(each.lease_id, each.device, each.further) for each in workers]


def _offers(report: HostReport | None) -> tuple[object, ...]:
    if report is None:
        return ()
    told = ((each.name, each.versions, each.problem) for each in report.environment_reports)
    said = (report.name, bool(report.devices), report.kernel_environments, report.environments)
    return (*said, *told)
