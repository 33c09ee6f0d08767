"""All the manager knows, in memory: a cache of the database, plus what hosts last said.

Only `UnitOfWork.merge` writes here, and only after the commit. Everybody may read.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.ids import ClaimId, HostId, LeaseId, UserName
from jupyter_gpupool.pool.lease import Lease

from .in_force import PolicyInForce
from .records import (
    AnnouncedKey,
    ClaimRecord,
    HostToken,
    OnceRecord,
    RecordedUse,
    UsageRecord,
    UserRecord,
    WatchRecord,
)
from .stirred import Journal

if TYPE_CHECKING:
    from jupyter_gpupool.manager.auth.tokens import TokenRecord
    from jupyter_gpupool.pool.host import Host
    from jupyter_gpupool.pool.reservation import Reservation
    from jupyter_gpupool.protocol.link import HostReport
    from jupyter_gpupool.scheduling.idle_dry_run import Recorded

    from .emptying import Announced

_ENDED_KEPT = 500
OnceKey = tuple[UserName, str]
_K = TypeVar("_K")
_V = TypeVar("_V")


class Books:
    """Claims that live and the last that ended, leases that hold a device, hosts, tokens, users.

    Attributes:
        reports: The last report of each host that is connected or silent; never stored.
        failures: Monotonic times at which workers of a claim were given up; never stored.
        told: Monotonic times at which what a claim's processes say was told; never stored.
        reservations: Devices booked for queues, those that are over until the next is made.
        announced: What claims have to give back for reservations; never stored.
        watches: How claims that run are used, as far as it was seen.
        kept_watches: The same as it was last stored, which is seldom.
        recording: What is seen of each claim since its last record for dry runs was written,
            oldest first.
        usage: What each user has used, by their leaf in the tree of queues.
        live: How many claims of each user have not ended.
        seq: The last event's position.
        agent_problem: Why the agent that the manager itself keeps last ended; "" if it never did.
            Never stored.
        journal: What the last commits changed that a pass sees.
    """

    def __init__(self) -> None:
        self.claims: dict[ClaimId, ClaimRecord] = {}
        self.leases: dict[LeaseId, Lease] = {}
        self.hosts: dict[HostId, Host] = {}
        self.reports: dict[HostId, HostReport] = {}
        self.host_tokens: dict[HostId, HostToken] = {}
        self.tokens: dict[str, TokenRecord] = {}
        self.users: dict[UserName, UserRecord] = {}
        self.once: dict[OnceKey, OnceRecord] = {}
        self.failures: dict[ClaimId, tuple[float, ...]] = {}
        self.told: dict[ClaimId, tuple[float, ...]] = {}
        self.usage: dict[str, UsageRecord] = {}
        self.reservations: dict[str, Reservation] = {}
        self.announced: dict[AnnouncedKey, Announced] = {}
        self.watches: dict[ClaimId, WatchRecord] = {}
        self.kept_watches: dict[ClaimId, WatchRecord] = {}
        self.recording: dict[ClaimId, tuple[Recorded, ...]] = {}
        self.policy = PolicyInForce()
        self.live: Counter[UserName] = Counter()
        self.seq = 0
        self.agent_problem = ""
        self.journal = Journal()
        self.tokens_by_digest: dict[str, TokenRecord] = {}
        self._by_claim: dict[ClaimId, dict[LeaseId, None]] = {}
        self._by_host: dict[HostId, dict[LeaseId, None]] = {}
        self._placed: dict[ClaimId, None] = {}
        self._noticed: dict[LeaseId, None] = {}
        self._promised: dict[ClaimId, None] = {}
        self._warned: dict[ClaimId, None] = {}
        self._with_kernels: dict[UserName, dict[ClaimId, None]] = {}
        self._ended: deque[ClaimId] = deque()

    def leases_of(self, claim_id: ClaimId) -> Iterator[Lease]:
        """The leases of a claim that hold a device, oldest first."""
        return (self.leases[lease_id] for lease_id in self._by_claim.get(claim_id, ()))

    def leases_on(self, host_id: HostId) -> Iterator[Lease]:
        """The leases that hold a device of this host."""
        return (self.leases[lease_id] for lease_id in self._by_host.get(host_id, ()))

    def placed(self) -> Iterator[ClaimRecord]:
        """The claims of which something may run somewhere."""
        return (self.claims[claim_id] for claim_id in self._placed)

    def promised(self) -> Iterator[ClaimRecord]:
        """The claims for which devices are kept."""
        return (self.claims[claim_id] for claim_id in self._promised)

    def warned(self) -> Iterator[ClaimRecord]:
        """The claims that are under a warning."""
        return (self.claims[claim_id] for claim_id in self._warned)

    def noticed(self) -> Iterator[Lease]:
        """The leases that will be taken back."""
        return (self.leases[lease_id] for lease_id in self._noticed)

    def with_kernels(self, owner: UserName) -> Iterator[Claim]:
        """The claims of a user that kernels use."""
        return (self.claims[claim_id].claim for claim_id in self._with_kernels.get(owner, ()))

    def open_records(self) -> Iterator[RecordedUse]:
        """What was seen of claims and is not written down yet, oldest first for each."""
        for claim_id, seen in self.recording.items():
            yield from (RecordedUse(claim_id=claim_id, recorded=each) for each in seen)

    def index_leases(self, leases: Iterable[Lease], gone: Iterable[Lease]) -> None:
        """Keep the ways to find leases true after these were written and those removed."""
        for lease in leases:
            self._by_claim.setdefault(lease.claim_id, {})[lease.id] = None
            self._by_host.setdefault(lease.host_id, {})[lease.id] = None
            if lease.notice is not None:
                self._noticed[lease.id] = None
            else:
                self._noticed.pop(lease.id, None)
        for lease in gone:
            _drop(self._by_claim, lease.claim_id, lease.id)
            _drop(self._by_host, lease.host_id, lease.id)
            self._noticed.pop(lease.id, None)

    def index_claims(self, records: Iterable[ClaimRecord]) -> None:
        """Keep the ways to find claims true, and forget the oldest of those that ended."""
        for record in records:
            claim = record.claim
            if record.is_placed:
                self._placed[claim.id] = None
            else:
                self._placed.pop(claim.id, None)
            if record.promised:
                self._promised[claim.id] = None
            else:
                self._promised.pop(claim.id, None)
            if claim.warning is not None:
                self._warned[claim.id] = None
            else:
                self._warned.pop(claim.id, None)
            if claim.kernels:
                self._with_kernels.setdefault(claim.owner, {})[claim.id] = None
            else:
                _drop(self._with_kernels, claim.owner, claim.id)
            if claim.phase is Phase.ENDED:
                self._ended.append(claim.id)
                self.failures.pop(claim.id, None)
                self.told.pop(claim.id, None)
        while len(self._ended) > _ENDED_KEPT:
            self.claims.pop(self._ended.popleft(), None)

    def index_tokens(self, new: "Iterable[TokenRecord]", gone: "Iterable[TokenRecord]") -> None:
        """Keep the way to find a token by its hash true."""
        for token in gone:
            self.tokens_by_digest.pop(token.digest, None)
        self.tokens_by_digest.update((token.digest, token) for token in new)


def _drop(index: dict[_K, dict[_V, None]], key: _K, value: _V) -> None:
    found = index.get(key)
    if found is not None:
        found.pop(value, None)
        if not found:
            del index[key]
