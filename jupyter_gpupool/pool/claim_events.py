"""What can happen to a claim: the inputs of its state machine, small and without behaviour."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from .evidence import Evidence
from .idle_rule import Otherwise
from .ids import HostId
from .process_problem import ProcessProblem
from .request import WorkerBounds


class EndKind(StrEnum):
    """How a claim ended."""

    RELEASED = "released"
    """Its user gave it back."""
    EXPIRED = "expired"
    """Its time limit, or the pool's longest life, was reached."""
    RECLAIMED = "reclaimed"
    """The policy took it back."""
    CANCELLED = "cancelled"
    """Its user gave it up before it had started."""
    FAILED = "failed"
    """It could not start, or lost what it cannot live without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEvent:
    """Something that happened to a claim. `reason` is one sentence its user can read."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted(ClaimEvent):
    """The plan grants its minimum; `scheduler_host` will run its scheduler."""

    scheduler_host: HostId
    longest_life: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerUp(ClaimEvent):
    """Its scheduler listens at `address`; `dashboard_port` is None while it has no dashboard."""

    address: str
    dashboard_port: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumUp(ClaimEvent):
    """Its scheduler and its minimum of workers are registered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFailed(ClaimEvent):
    """A start came to nothing; the reason holds the failing process's last lines."""

    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn(ClaimEvent):
    """Its devices went to somebody else before it was up: it waits again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersChanged(ClaimEvent):
    """Workers were added, shrunk, lost or replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled(ClaimEvent):
    """Its user wants other bounds."""

    bounds: WorkerBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(ClaimEvent):
    """Something will be taken from it at a time, by a rule; the reason says which.

    Attributes:
        evidence: What a rule on idle claims rests on, else None.
    """

    rule: str
    after: timedelta
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningCleared(ClaimEvent):
    """What it was warned of will not happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemsChanged(ClaimEvent):
    """Something keeps its processes from their work, or does no longer."""

    problems: tuple[ProcessProblem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(ClaimEvent):
    """Its user does not want it taken as idle for this long; None takes that back."""

    duration: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HibernateAsked(ClaimEvent):
    """Its devices go back, its results stay.

    Attributes:
        otherwise: What becomes of it if they cannot be kept.
        resumes: It goes on with its work as soon as it has devices again.
        scaled: Its user wants no workers: until it is scaled up, or they ask for it otherwise.
    """

    otherwise: Otherwise = Otherwise.LEAVE
    resumes: bool = False
    scaled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomGiven(ClaimEvent):
    """Its results have room where they are to be kept; they count there from now on."""

    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKept(ClaimEvent):
    """Its results cannot be kept, and nothing was taken; the reason names the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsKept(ClaimEvent):
    """Its results are safe: nothing of it needs its devices any more.

    Attributes:
        results: How many there are.
        result_bytes: What they take.
        keep_for: For how long they are kept at most.
    """

    results: int
    result_bytes: int
    keep_for: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsLost(ClaimEvent):
    """What kept its results has ended. So many in all are computed again, or are gone for good."""

    again: int
    gone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAsked(ClaimEvent):
    """It wants devices again.

    Attributes:
        keeps_place: In line it stands where it stood before it hibernated.
    """

    keeps_place: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsBack(ClaimEvent):
    """Its results are on its workers again, or will be computed there.

    Attributes:
        unread: So many stay kept, for no worker could read them.
    """

    unread: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAsked(ClaimEvent):
    """It has to end."""

    kind: EndKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AllFreed(ClaimEvent):
    """Nothing of it runs any more and every device is proven free."""
