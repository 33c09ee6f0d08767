"""What the manager keeps of each thing beside the pool's own words.

Read and written by the commands, saved by the store.
"""

from dataclasses import dataclass, field
from datetime import datetime

from jupyter_gpupool.manager.certificates import ClaimSecrets
from jupyter_gpupool.pool.claim import Claim, Phase
from jupyter_gpupool.pool.ids import ClaimId, HostId, UserName
from jupyter_gpupool.scheduling.idle_dry_run import Recorded
from jupyter_gpupool.scheduling.idle_watch import Watch
from jupyter_gpupool.scheduling.shape import HeldWorker
from jupyter_gpupool.scheduling.usage import Usage

AnnouncedKey = tuple[ClaimId, str]
"""A claim, and for which reservation it gives devices back; "" if an earlier manager said so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """A claim is on its way to other devices: from the notice until they are granted.

    Attributes:
        claimant: For whom.
        reason: Why, as its user was told.
    """

    claimant: ClaimId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRecord:
    """A claim with what its agents need.

    Attributes:
        start: Grows with each grant of its minimum; 0 before the first.
        secrets: Made with the first grant.
        os_user: Whose processes it is, fixed by the first grant; None is the agent's own user.
        avoid: Hosts on which a start of it failed, until it runs.
        promised: Workers it gets as soon as their devices are freed for it; one that is moving
            goes there.
        moving: It gives what it has for others and goes on elsewhere; None if it does not.
        stayed_at: When others needed its devices last and its results could not be kept.
        served_s: Device-seconds of its leases that have ended.
    """

    claim: Claim
    start: int = 0
    os_user: str | None = None
    avoid: frozenset[HostId] = frozenset()
    promised: tuple[HeldWorker, ...] = ()
    moving: Moving | None = None
    stayed_at: datetime | None = None
    served_s: float = 0.0
    secrets: ClaimSecrets | None = field(default=None, repr=False)

    @property
    def is_placed(self) -> bool:
        """Whether something of it may run somewhere, so that hosts have to know."""
        return self.claim.scheduler is not None or self.claim.phase is Phase.ENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """A user. `os_user` is whose processes their workers are; None is the user of that name."""

    name: UserName
    os_user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostToken:
    """The token a host joined with: no other may speak for it while that one counts."""

    host_id: HostId
    token_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnceRecord:
    """An answered request with an idempotency key.

    Attributes:
        body: SHA-256 of what was asked.
        answer: What was made, as its maker wrote it down: an id, or a sealed text.
    """

    user: UserName
    key: str
    body: str
    answer: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRevision:
    """A policy as it was applied.

    Attributes:
        revision: From 1.
        by: Who applied it.
        source: The document, word for word.
        comment: Why, in their words.
        restores: The earlier revision it brings back, if it is a rollback.
    """

    revision: int
    at: datetime
    by: UserName
    source: str
    comment: str = ""
    restores: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """What one user has used in one queue.

    Attributes:
        leaf: The user's leaf in the tree of queues.
        decayed: What fair shares are corrected by.
        spent: What was used within the budget's period that began last; nothing decays in it.
    """

    leaf: str
    decayed: Usage = field(default_factory=Usage)
    spent: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRecord:
    """What is known of how a claim is used.

    Attributes:
        saved_s: When it was last written down, by this manager's monotonic clock; None if another
            one did.
        next_s: When something may be due, by the same clock; None if nothing is ahead.
    """

    claim_id: ClaimId
    watch: Watch
    saved_s: float | None = None
    next_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedUse:
    """What was seen of a claim for a while, for dry runs of policies."""

    claim_id: ClaimId
    recorded: Recorded
