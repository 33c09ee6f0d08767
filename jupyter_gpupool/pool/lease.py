"""A lease: what one worker of a claim is granted, until its devices are proven free.

That is one device, a share of one that others may hold the rest of, or several whole devices.
"""

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
        only_if_kept: It is taken only if the claim's results can be kept, else the claim stays.
    """

    deadline: datetime
    claimants: tuple[ClaimId, ...]
    only_if_kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What one worker of a claim is granted: a device, a share of one, or several of one host.

    Attributes:
        device: Its first device, in the order of the host.
        further: Its other devices, if it has several.
        share: Thousandths of its device; all of it unless others may hold the rest.
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
    further: tuple[DeviceUuid, ...] = ()
    share: int = WHOLE_DEVICE

    @property
    def devices(self) -> tuple[DeviceUuid, ...]:
        """All its devices, in the order of the host."""
        return (self.device, *self.further)

    @property
    def holds_device(self) -> bool:
        """Whether the device is still this lease's, whatever became of its worker."""
        return self.phase is not LeasePhase.ENDED

    @property
    def thousandths(self) -> int:
        """How much of devices is this lease's, all together."""
        return self.share * len(self.devices) if self.holds_device else 0

    @property
    def is_part(self) -> bool:
        """Whether others may hold the rest of its device."""
        return self.share < WHOLE_DEVICE

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
