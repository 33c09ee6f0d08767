"""What a pass decides: small frozen actions, each with the reason its people read.

Carried out by the manager and, on virtual time, by the simulator.
"""

from dataclasses import dataclass
from enum import StrEnum

from jupyter_gpupool.pool.ids import ClaimId

from .shape import HeldWorker


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Workers for a claim, now: its first, or more of them.

    Attributes:
        lent_until_s: Until when they are lent, if they are kept for another; past that, the claim
            may be hibernated for it. The claim's view says so from then on.
    """

    claim_id: ClaimId
    workers: tuple[HeldWorker, ...]
    reason: str
    lent_until_s: float | None = None


class TakeHow(StrEnum):
    """How leases are taken back from a claim."""

    SHRINK = "shrink"
    """It goes on with fewer workers."""
    HIBERNATE = "hibernate"
    """It gives all of them back and keeps its results."""
    RELEASE = "release"
    """It ends, for it cannot hibernate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Workers taken back from a claim.

    Attributes:
        claimant: For whom.
        busy: It was doing something: it is given notice and its `on_reclaim` callback.
    """

    claim_id: ClaimId
    workers: tuple[HeldWorker, ...]
    how: TakeHow
    claimant: ClaimId
    reason: str
    busy: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Workers that a claim has to give back by a moment, unless a later pass repeats it no more.

    Attributes:
        by_s: When the window opens.
        booking: For which booking.
    """

    claim_id: ClaimId
    workers: tuple[HeldWorker, ...]
    how: TakeHow
    by_s: float
    booking: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Workers of a claim that go elsewhere for another; if all go, it hibernates on the way.

    Attributes:
        to: Where they go; some of it may still have to be freed.
        claimant: For whom.
        busy: As of a `Take`.
        goes_on: It keeps other workers meanwhile.
    """

    claim_id: ClaimId
    workers: tuple[HeldWorker, ...]
    to: tuple[HeldWorker, ...]
    claimant: ClaimId
    reason: str
    busy: bool = True
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Workers that a claim gets as soon as their devices are freed."""

    claim_id: ClaimId
    workers: tuple[HeldWorker, ...]
    reason: str


class Constraint(StrEnum):
    """What keeps a claim waiting."""

    DEVICES = "devices"
    """Not enough devices that fit are free."""
    GANG = "gang"
    """Enough are free in total, but not together on hosts."""
    LIMIT = "limit"
    """Its queue, or one above it, has all it may have."""
    GUARANTEE = "guarantee"
    """It is firm and its queue's guarantee is used up."""
    RESERVED = "reserved"
    """What would fit is kept for another."""
    FREEING = "freeing"
    """Its devices are being freed."""
    NEVER = "never"
    """The pool as it is could not serve it even if it were empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why a claim does not have what it wants.

    Attributes:
        place: From 1, among those who wait for what it could use.
        moves: It would fit if so many other claims moved, and the policy moves nobody; else 0.
    """

    claim_id: ClaimId
    place: int
    constraint: Constraint
    reason: str
    moves: int = 0

    @property
    def never(self) -> bool:
        """Whether only another pool than this one could serve it."""
        return self.constraint is Constraint.NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What one pass decides, in the order in which it was decided.

    Attributes:
        notices: What has to be given back for bookings; each pass says all of it anew.
        unfinished: It made room for as many claims as it may; the next pass goes on.
    """

    grants: tuple[Grant, ...] = ()
    takes: tuple[Take, ...] = ()
    moves: tuple[Move, ...] = ()
    promises: tuple[Promise, ...] = ()
    waits: tuple[Waiting, ...] = ()
    notices: tuple[Notice, ...] = ()
    unfinished: bool = False

    @property
    def concerned(self) -> frozenset[ClaimId]:
        """Whoever gets or gives anything."""
        got = (*(g.claim_id for g in self.grants), *(p.claim_id for p in self.promises))
        gave = (*(t.claim_id for t in self.takes), *(m.claim_id for m in self.moves))
        return frozenset((*got, *gave))

    @property
    def changes_nothing(self) -> bool:
        """Whether the pool stays as it is."""
        return not (self.grants or self.takes or self.moves or self.promises)
