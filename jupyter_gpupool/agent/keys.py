"""The name of a process that the agent keeps: which claim, which start, and what it is in it.

Used as the key of every table in the agent, and as the name of the process's record.
"""

from dataclasses import dataclass

from jupyter_gpupool.pool.ids import ClaimId, LeaseId
from jupyter_gpupool.protocol.keeping import HOLDER_NAME
from jupyter_gpupool.protocol.launch import Role


@dataclass(frozen=True, slots=True, order=True)
class ProcessKey:
    """A scheduler (no lease), a worker (one lease) or the holder of one start of a claim.

    Attributes:
        lease_id: The holder has none; `HOLDER_NAME`, which no lease is called, stands in its place.
    """

    claim_id: ClaimId
    start: int
    lease_id: LeaseId | None = None

    @property
    def role(self) -> Role:
        """What the process is."""
        if self.lease_id is None:
            return Role.SCHEDULER
        return Role.HOLDER if self.lease_id == HOLDER_NAME else Role.WORKER

    @property
    def scheduler(self) -> "ProcessKey":
        """The scheduler of the same start."""
        return ProcessKey(self.claim_id, self.start)

    @property
    def holder(self) -> "ProcessKey":
        """The holder of the same start."""
        return ProcessKey(self.claim_id, self.start, LeaseId(HOLDER_NAME))

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
    """The file that holds the output of a worker, the holder, or the scheduler without a lease."""
    if lease_id is None:
        return "scheduler.log"
    return f"{HOLDER_NAME}.log" if lease_id == HOLDER_NAME else f"worker-{lease_id}.log"
