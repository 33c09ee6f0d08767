"""A lease: one device granted to one claim, from the grant until the device is proven free."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from .ids import ClaimId, DeviceUuid, HostId, LeaseId

WHOLE_DEVICE = 1000
"""A whole device, in the thousandths that leases are counted in."""


class LeasePhase(StrEnum):
    """How far a lease is. Only ENDED frees its device."""

    GRANTED = "granted"
    """The agent has been told; its worker is on the way up, or is being forked again."""
    RUNNING = "running"
    """Its worker is registered with the claim's scheduler."""
    RETIRING = "retiring"
    """Its worker hands its results to others before it goes."""
    ENDING = "ending"
    """Its worker has to go now; the device is not free before the agent says so."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A lease will be taken back.

    Attributes:
        claimants: For whom; none of them wants it any more: the notice is void.
    """

    deadline: datetime
    claimants: tuple[ClaimId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One device granted to one claim.

    Attributes:
        reason: Why it is in this phase, one sentence.
        restarts: How often its worker has been forked again.
        notice: That it will be taken back, else None.
        lent_until: Until when the device, kept for another claim, was lent; else None.
    """

    id: LeaseId
    claim_id: ClaimId
    host_id: HostId
    device: DeviceUuid
    phase: LeasePhase
    granted_at: datetime
    phase_since: datetime
    reason: str = ""
    restarts: int = 0
    notice: Notice | None = None
    lent_until: datetime | None = None

    @property
    def holds_device(self) -> bool:
        """Whether the device is still this lease's, whatever became of its worker."""
        return self.phase is not LeasePhase.ENDED

    @property
    def thousandths(self) -> int:
        """How much of its device is this lease's."""
        return WHOLE_DEVICE if self.holds_device else 0

    @property
    def counts(self) -> bool:
        """Whether it is one of the workers its claim can go on using."""
        return self.phase in (LeasePhase.GRANTED, LeasePhase.RUNNING)

    @property
    def stays(self) -> bool:
        """Whether it counts, and nobody is about to take it back."""
        return self.counts and self.notice is None

    def moved(self, phase: LeasePhase, reason: str, now: datetime) -> "Lease":
        """The lease in another phase. A lease only ever moves forward, or back to GRANTED.

        Raises:
            ValueError: If it has ended: an ended lease never comes back.
        """
        if self.phase is LeasePhase.ENDED:
            raise ValueError(f"lease {self.id} has ended and cannot become {phase}")
        return replace(self, phase=phase, reason=reason, phase_since=now)
