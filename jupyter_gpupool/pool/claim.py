"""A claim: what is known of one user's right to workers, and where it is in its life.

Changed by `claim_machine` alone, along the arrows of its table.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from .claim_events import EndKind
from .evidence import Evidence
from .hibernation import Hibernation
from .ids import ClaimId, HostId, UserName
from .kernel import Kernel
from .process_problem import ProcessProblem
from .request import ClaimRequest, WorkerBounds

MOST_START_TRIES = 3


class Phase(StrEnum):
    """Where a claim is in its life."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    HIBERNATING = "hibernating"
    HIBERNATED = "hibernated"
    RESUMING = "resuming"
    ENDING = "ending"
    ENDED = "ended"


WAITING = frozenset({Phase.PENDING, Phase.RESUMING})
"""Phases in which a claim waits for a grant."""
HOLDING = frozenset({Phase.STARTING, Phase.RUNNING, Phase.HIBERNATING, Phase.ENDING})
"""Phases in which a claim may hold leases that are not just being freed."""
OVER = frozenset({Phase.ENDING, Phase.ENDED})
"""Phases of a claim that nobody can use any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryLine:
    """One arrow a claim went along."""

    at: datetime
    phase: Phase
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warning_:  # noqa: N801 - Warning is Python's own
    """What will be taken from the claim, by which rule, and when.

    Attributes:
        evidence: What a rule on idle claims rests on; None if others need what it holds.
    """

    rule: str
    deadline: datetime
    reason: str
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerPlace:
    """Where a claim's scheduler runs; `address` is None until it listens."""

    host_id: HostId
    address: str | None = None
    dashboard_port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One user's right to workers.

    Attributes:
        bounds: How many workers it wants now; the request's until it is scaled.
        wanted_since: When it last asked for what it has not yet: its place in line.
        failed_starts: Starts that came to nothing since it last ran.
        expires_at: When it ends by itself; set on the first grant. While it hibernates, until
            when its results are kept.
        latest_end: Beyond that it cannot live, whatever happens: its keys would not hold.
        kept_until: Nothing takes it as idle before: its user has said so.
        end: How it ended or is ending, else None.
        kernels: The Python processes that use it.
        problems: What keeps its processes from their work while it runs.
        hibernation: From the wish for it until its results are back on workers, else None.
        story: Its last arrows, oldest first.
    """

    id: ClaimId
    owner: UserName
    request: ClaimRequest
    phase: Phase
    bounds: WorkerBounds
    created_at: datetime
    phase_since: datetime
    wanted_since: datetime
    reason: str
    failed_starts: int = 0
    scheduler: SchedulerPlace | None = None
    started_at: datetime | None = None
    expires_at: datetime | None = None
    latest_end: datetime | None = None
    warning: Warning_ | None = None
    kept_until: datetime | None = None
    end: EndKind | None = None
    kernels: tuple[Kernel, ...] = ()
    problems: tuple[ProcessProblem, ...] = ()
    hibernation: Hibernation | None = None
    story: tuple[StoryLine, ...] = ()

    @property
    def name(self) -> str:
        """What people call it: the given name, else its id."""
        return self.request.name or self.id

    @property
    def awaits_results(self) -> bool:
        """Whether results are kept without a worker that are to come back to one."""
        return self.hibernation is not None and not self.hibernation.unread

    @property
    def is_over(self) -> bool:
        """Whether it is ending or has ended: nothing brings it back."""
        return self.phase in (Phase.ENDING, Phase.ENDED)
