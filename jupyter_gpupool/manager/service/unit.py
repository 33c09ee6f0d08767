"""The unit of work: what commands change, laid over the books until it is committed.

Every command gets its own unit on top of its batch's. One that raises is dropped alone; the others
are written in one transaction and only then become the books.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.event import Event, EventKind
from jupyter_gpupool.pool.evidence import Evidence
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, LeaseId, UserName
from jupyter_gpupool.pool.lease import Lease

from .accounting import charged, service_s
from .books import Books, OnceKey
from .layer import Layer
from .outbox import Outboxes
from .records import (
    AnnouncedKey,
    ClaimRecord,
    HostToken,
    OnceRecord,
    PolicyRevision,
    RecordedUse,
    UsageRecord,
    UserRecord,
    WatchRecord,
)
from .stirred import Stirred, stirred_by

if TYPE_CHECKING:
    from jupyter_gpupool.manager.auth.tokens import TokenRecord
    from jupyter_gpupool.pool.host import Host
    from jupyter_gpupool.pool.reservation import Reservation
    from jupyter_gpupool.protocol.link import HostReport
    from jupyter_gpupool.scheduling.idle_dry_run import Recorded

    from .emptying import Announced
    from .idle_sight import IdleSight
    from .in_force import PolicyInForce
    from .sight import Sight


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a batch runs, and with what it has to reckon besides the books.

    Attributes:
        outboxes: What each host has been told; only read by commands.
        sight: What passes remember; whatever becomes of the batch, it stays true.
        idle: What is known of how claims are used, and who waits; only read by commands.
    """

    now: datetime
    monotonic_s: float
    settings: Settings
    outboxes: Outboxes
    sight: "Sight"
    idle: "IdleSight"


class UnitOfWork:
    """Reads fall through to the books; writes stay here until `merge`.

    Attributes:
        below: What it is laid over.
        replan: A pass may decide something new, for claims that have waited for long too.
        arrived: New claims. They change nothing for those that are there.
        agent_problem: As the books have it.
    """

    def __init__(self, below: "Books | UnitOfWork", moment: Moment) -> None:
        self.below = below
        self.moment = moment
        self.claims: Layer[ClaimId, ClaimRecord] = Layer(below.claims)
        self.leases: Layer[LeaseId, Lease] = Layer(below.leases)
        self.hosts: Layer[HostId, Host] = Layer(below.hosts)
        self.reports: Layer[HostId, HostReport] = Layer(below.reports)
        self.host_tokens: Layer[HostId, HostToken] = Layer(below.host_tokens)
        self.tokens: Layer[str, TokenRecord] = Layer(below.tokens)
        self.users: Layer[UserName, UserRecord] = Layer(below.users)
        self.once: Layer[OnceKey, OnceRecord] = Layer(below.once)
        self.failures: Layer[ClaimId, tuple[float, ...]] = Layer(below.failures)
        self.told: Layer[ClaimId, tuple[float, ...]] = Layer(below.told)
        self.usage: Layer[str, UsageRecord] = Layer(below.usage)
        self.reservations: Layer[str, Reservation] = Layer(below.reservations)
        self.announced: Layer[AnnouncedKey, Announced] = Layer(below.announced)
        self.watches: Layer[ClaimId, WatchRecord] = Layer(below.watches)
        self.kept_watches: Layer[ClaimId, WatchRecord] = Layer(below.kept_watches)
        self.policy: PolicyInForce = below.policy
        self.recording: Layer[ClaimId, tuple[Recorded, ...]] = Layer(below.recording)
        self.new_recorded: list[RecordedUse] = []
        self.new_policies: list[PolicyRevision] = []
        self.ended_leases: dict[LeaseId, Lease] = {}
        self.events: list[Event] = []
        self.live: Counter[UserName] = Counter()
        self.seq: int = below.seq
        self.replan = False
        self.arrived: list[ClaimId] = []
        self.agent_problem: str = below.agent_problem

    @property
    def now(self) -> datetime:
        """Wall time of this batch."""
        return self.moment.now

    @property
    def is_blank(self) -> bool:
        """Whether nothing is changed here, nor in anything between this and the books."""
        below = self.below
        if isinstance(below, UnitOfWork) and not below.is_blank:
            return False
        is_same = self.policy is below.policy and self.agent_problem == below.agent_problem
        return is_same and not any(layer.changed for layer in self._layers())

    def laid_over(self) -> tuple[Books, Stirred]:
        """The books at the bottom, and what may look otherwise here than there."""
        below, mine = self.below, stirred_by(self)
        if isinstance(below, Books):
            return below, mine
        books, found = below.laid_over()
        found.add(mine)
        return books, found

    def child(self) -> "UnitOfWork":
        """A unit on top of this one, for one command."""
        return UnitOfWork(self, self.moment)

    def leases_of(self, claim_id: ClaimId) -> Iterator[Lease]:
        """The leases of a claim that hold a device, oldest first."""
        found = {lease.id: lease for lease in self.below.leases_of(claim_id)}
        mine = {i: x for i, x in self.leases.changed.items() if x is None or x.claim_id == claim_id}
        return _overlaid(found, mine)

    def leases_on(self, host_id: HostId) -> Iterator[Lease]:
        """The leases that hold a device of this host."""
        found = {lease.id: lease for lease in self.below.leases_on(host_id)}
        mine = {i: x for i, x in self.leases.changed.items() if x is None or x.host_id == host_id}
        return _overlaid(found, mine)

    def placed(self) -> Iterator[ClaimRecord]:
        """The claims of which something may run somewhere."""
        changed = self.claims.changed
        yield from (r for r in self.below.placed() if r.claim.id not in changed)
        yield from (r for r in changed.values() if r is not None and r.is_placed)

    def promised(self) -> Iterator[ClaimRecord]:
        """The claims for which devices are kept."""
        changed = self.claims.changed
        yield from (r for r in self.below.promised() if r.claim.id not in changed)
        yield from (r for r in changed.values() if r is not None and r.promised)

    def warned(self) -> Iterator[ClaimRecord]:
        """The claims that are under a warning."""
        changed = self.claims.changed
        yield from (r for r in self.below.warned() if r.claim.id not in changed)
        yield from (r for r in changed.values() if r is not None and r.claim.warning is not None)

    def noticed(self) -> Iterator[Lease]:
        """The leases that will be taken back."""
        changed = self.leases.changed
        yield from (x for x in self.below.noticed() if x.id not in changed)
        yield from (x for x in changed.values() if x is not None and x.notice is not None)

    def put_lease(self, lease: Lease) -> None:
        """Keep a lease, or let go of it once it has ended, and charge its owner."""
        before = self.leases.get(lease.id)
        self._charge(lease, lease.thousandths - (0 if before is None else before.thousandths))
        if lease.holds_device:
            self.leases[lease.id] = lease
        else:
            self._note_service(lease, before)
            del self.leases[lease.id]
            self.ended_leases[lease.id] = lease

    def _note_service(self, ended: Lease, before: Lease | None) -> None:
        """Count what a claim has had of a lease."""
        record = self.claims.get(ended.claim_id)
        if record is not None and before is not None:
            more_s = service_s(before, self.now.timestamp())
            self.put_claim(replace(record, served_s=record.served_s + more_s))

    def _charge(self, lease: Lease, change: int) -> None:
        record = self.claims.get(lease.claim_id)
        queue = None if record is None else self.policy.queue_of(record.claim)
        if not change or record is None:
            return
        leaf = self.policy.leaf_of(record.claim)
        self.usage[leaf] = charged(
            self.usage.get(leaf) or UsageRecord(leaf=leaf),
            change,
            self.now.timestamp(),
            half_life_s=self.policy.policy.rules.half_life_s,
            period_s=None if queue is None else queue.user_limits.period_s,
        )

    def put_claim(self, record: ClaimRecord) -> None:
        """Keep a claim."""
        before = self.claims.get(record.claim.id)
        change = _lives(record) - (before is not None and _lives(before))
        if change:
            self.live[record.claim.owner] += change
        self.claims[record.claim.id] = record

    def live_claims_of(self, owner: UserName) -> int:
        """How many claims of a user have not ended."""
        below = self.below
        lower = below.live[owner] if isinstance(below, Books) else below.live_claims_of(owner)
        return lower + self.live[owner]

    def record(
        self,
        kind: EventKind,
        reason: str,
        *,
        owner: UserName | None = None,
        claim_id: ClaimId | None = None,
        host_id: HostId | None = None,
        device: DeviceUuid | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        """Write down what happened; people are told after the commit."""
        self.seq += 1
        event = Event(
            seq=self.seq,
            at=self.now,
            kind=kind,
            reason=reason,
            owner=owner,
            claim_id=claim_id,
            host_id=host_id,
            device=device,
            evidence=evidence,
        )
        self.events.append(event)

    def merge(self) -> None:
        """Make the changes part of what lies below: the batch's unit, or the books."""
        below = self.below
        if isinstance(below, Books):
            below.journal.note(stirred_by(self))
        gone = [x for x in self.ended_leases.values() if below.leases.get(x.id) is not None]
        void = [t for i in self.tokens.changed if (t := below.tokens.get(i)) is not None]
        for layer in self._layers():
            layer.merge_down()
        below.seq = self.seq
        below.agent_problem = self.agent_problem
        below.live.update(self.live)
        below.policy = self.policy
        if isinstance(below, UnitOfWork):
            below.ended_leases.update(self.ended_leases)
            below.events += self.events
            below.new_policies += self.new_policies
            below.new_recorded += self.new_recorded
            below.replan = below.replan or self.replan
            below.arrived += self.arrived
        else:
            self._index(below, gone, void)

    def _layers(self) -> tuple[Layer[Any, Any], ...]:
        of_hosts = (self.hosts, self.host_tokens, self.reports)
        of_users = (self.tokens, self.users, self.once)
        of_queues = (self.usage, self.reservations, self.announced)
        of_watches = (self.watches, self.kept_watches, self.recording)
        of_claims = (self.claims, self.leases, self.failures, self.told, *of_watches)
        return (*of_claims, *of_hosts, *of_users, *of_queues)

    def _index(self, books: Books, gone: list[Lease], void: "list[TokenRecord]") -> None:
        kept = [lease for lease in self.leases.changed.values() if lease is not None]
        books.index_leases(kept, gone)
        books.index_claims(record for record in self.claims.changed.values() if record is not None)
        made = [token for token in self.tokens.changed.values() if token is not None]
        books.index_tokens(made, void)


def _lives(record: ClaimRecord) -> bool:
    return record.claim.phase is not Phase.ENDED


def _overlaid(found: dict[LeaseId, Lease], mine: dict[LeaseId, Lease | None]) -> Iterator[Lease]:
    for lease_id, lease in mine.items():
        if lease is None:
            found.pop(lease_id, None)
        else:
            found[lease_id] = lease
    return iter(list(found.values()))
