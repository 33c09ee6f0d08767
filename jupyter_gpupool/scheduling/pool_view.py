"""What one pass sees of the pool at one moment: frozen, without clock or service.

Built by the manager from its books, by the simulator from a trace, by tests from a line or two. The
order of hosts and claims does not matter to a plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from jupyter_gpupool.pool.ids import ClaimId, HostId, UserName

from .queues import QueueTree
from .shape import ONE_DEVICE, HeldWorker, HostShape, WorkerShape


class SurplusOrder(StrEnum):
    """Who gets what is left when every guarantee is met."""

    FAIR_SHARE = "fair_share"
    LEAST_ATTAINED_SERVICE = "least_attained_service"


class Sharing(StrEnum):
    """Who may hold parts of one device together."""

    SAME_USER = "same_user"
    SAME_QUEUE = "same_queue"
    ANYONE = "anyone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the policy says of scheduling.

    Attributes:
        half_life_s: After which time usage counts half.
        usage_weight: k of the correction by usage; 0 switches it off.
        surplus_order: Who gets the surplus.
        levels: Device-seconds at which attained service steps to the next level.
        sharing: Who may hold parts of one device together.
        may_move: Whether claims may be hibernated and resumed elsewhere so that a gang fits.
        most_moved: Claims moved for one gang at most.
        blocked_for_s: A claim blocked so long holds a reservation.
        hibernate_cost_s: What one hibernate-and-resume costs a claim.
    """

    half_life_s: float = 86_400.0
    usage_weight: float = 0.5
    surplus_order: SurplusOrder = SurplusOrder.FAIR_SHARE
    levels: tuple[float, ...] = (3_600.0, 36_000.0)
    sharing: Sharing = Sharing.SAME_USER
    may_move: bool = False
    most_moved: int = 16
    blocked_for_s: float = 600.0
    hibernate_cost_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    """A claim that waits or holds leases, as a pass sees it.

    Attributes:
        queue: Its leaf.
        priority: Of its class; a higher one is served first within its queue.
        firm: It is never taken, and so it starts only inside its queue's guarantee.
        since_s: When it asked for what it lacks: its age.
        minimum: Workers it needs together before it gets any.
        maximum: Workers it would take.
        held: Its workers, in the order of their grants.
        promised: Workers whose devices are being freed for it.
        started_s: When it was granted what it holds, else None.
        attained_s: Device-seconds it has held in all, until now.
        idle: It holds devices and does nothing, by the idle rules' own word.
        can_hibernate: Its results can be kept without its devices.
        hibernated: It waits with its results kept.
        expected_s: How long it is thought to hold its devices from its start, if known.
        time_limit_s: How long it may at most, if limited.
        deadline_s: When its user wants it done, if said.
        near: Hosts it would like, for their data.
        scheduler_host: Where its Dask scheduler runs already.
    """

    id: ClaimId
    owner: UserName
    queue: str
    priority: int = 0
    firm: bool = False
    since_s: float = 0.0
    minimum: int = 1
    maximum: int = 1
    worker: WorkerShape = ONE_DEVICE
    held: tuple[HeldWorker, ...] = ()
    promised: tuple[HeldWorker, ...] = ()
    started_s: float | None = None
    attained_s: float = 0.0
    idle: bool = False
    can_hibernate: bool = True
    hibernated: bool = False
    expected_s: float | None = None
    time_limit_s: float | None = None
    deadline_s: float | None = None
    near: frozenset[HostId] = frozenset()
    scheduler_host: HostId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """The pool at one moment.

    Attributes:
        now_s: The moment, on the axis of every other time here.
        tree: The queues, a leaf for every user that has a claim.
        usage: Decayed device-seconds by queue, inner ones included.
    """

    now_s: float
    tree: QueueTree
    hosts: tuple[HostShape, ...]
    claims: tuple[ClaimView, ...]
    rules: Rules = Rules()
    usage: Mapping[str, float] = field(default_factory=dict)
