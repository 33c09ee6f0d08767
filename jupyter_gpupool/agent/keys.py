"""The name of a process that the agent keeps: which claim, which start, scheduler or which lease.

Used as the key of every table in the agent, and as the name of the process's record.
"""

from dataclasses import dataclass

from jupyter_gpupool.pool.ids import ClaimId, LeaseId
from jupyter_gpupool.protocol.launch import Role


@dataclass(frozen=True, slots=True, order=True)
class ProcessKey:
    """A scheduler (no lease) or a worker (one lease) of one start of a claim."""

    claim_id: ClaimId
    start: int
    lease_id: LeaseId | None = None

    @property
    def role(self) -> Role:
        """What the process is."""
        return Role.SCHEDULER if self.lease_id is None else Role.WORKER

    @property
    def scheduler(self) -> "ProcessKey":
        """The scheduler of the same start."""
        return ProcessKey(self.claim_id, self.start)

    @property
    def log_name(self) -> str:
        """The file in the claim's log folder that holds its output."""
        return log_name_of(self.lease_id)

    @property
    def mark(self) -> str:
        """What its programs carry in their environment as GPUPOOL_LEASE."""
        return "scheduler" if self.lease_id is None else self.lease_id

    def __str__(self) -> str:
        return f"{self.mark} of claim {self.claim_id}"


def log_name_of(lease_id: str | None) -> str:
    """The file that holds the output of a worker, or of the scheduler without a lease."""
    return "scheduler.log" if lease_id is None else f"worker-{lease_id}.log"
