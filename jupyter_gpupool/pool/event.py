"""What happened in the pool, in order: what users and admins are told, and what is kept."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from .evidence import Evidence
from .ids import ClaimId, DeviceUuid, HostId, LeaseId, UserName


class EventKind(StrEnum):
    """What an event is about."""

    CLAIM_PENDING = "claim.pending"
    CLAIM_STARTING = "claim.starting"
    CLAIM_RUNNING = "claim.running"
    CLAIM_CHANGED = "claim.changed"
    """Still running: workers added, shrunk, lost, replaced; a warning set or cleared."""
    CLAIM_KERNELS = "claim.kernels"
    """A kernel uses it from now on, or uses it no more."""
    CLAIM_KEPT = "claim.kept"
    """Its user has said how long nothing may take it as idle."""
    CLAIM_HIBERNATING = "claim.hibernating"
    CLAIM_HIBERNATED = "claim.hibernated"
    CLAIM_RESUMING = "claim.resuming"
    CLAIM_ENDING = "claim.ending"
    CLAIM_ENDED = "claim.ended"
    HOST_JOINED = "host.joined"
    HOST_SILENT = "host.silent"
    HOST_LOST = "host.lost"
    DEVICE_QUARANTINED = "device.quarantined"
    DEVICE_CLEARED = "device.cleared"
    POLICY_APPLIED = "policy.applied"
    RESERVATION_MADE = "reservation.made"
    RESERVATION_CANCELLED = "reservation.cancelled"
    TOKEN_MADE = "token.made"  # noqa: S105 - the name of an event
    """Somebody else has made a token that acts as this user."""
    TOKEN_REVOKED = "token.revoked"  # noqa: S105 - as above


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened, with its reason in a sentence a user can read.

    Attributes:
        seq: Position in the pool's history; grows by at least one, never reused.
        owner: Whose claim it is about; None is for everybody.
        evidence: What it rests on, if a rule on idle claims warned of something or took it.
    """

    seq: int
    at: datetime
    kind: EventKind
    reason: str
    owner: UserName | None = None
    claim_id: ClaimId | None = None
    lease_id: LeaseId | None = None
    host_id: HostId | None = None
    device: DeviceUuid | None = None
    evidence: Evidence | None = None
