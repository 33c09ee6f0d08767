"""What one pass sees of the pool at one moment: frozen, without clock or service.

Built by the manager from its books, by the simulator from a trace, by tests from a line or two. The
order of hosts and claims does not matter to a plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_gpupool.pool.ids import ClaimId, HostId, UserName
from jupyter_gpupool.pool.rules import Rules

from .queues import QueueTree
from .reservations import Booking
from .shape import ONE_DEVICE, HeldWorker, HostShape, WorkerShape


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
        awaits: Others still hold what they give for it, be it only room below a limit.
        started_s: When it was granted what it holds, else None.
        attained_s: Device-seconds it has held in all, until now.
        idle: It holds devices and does nothing, by the idle rules' own word.
        can_hibernate: Its results can be kept without its devices.
        hibernated: It waits with its results kept.
        expected_s: How long it is thought to hold its devices from its start, if known.
        expected_at_most_s: What nine of ten like it stay below, if learned; see `expected`.
        time_limit_s: How long it may at most, if limited.
        deadline_s: When its user wants it done, if said.
        lent_until_s: Until when its devices, kept for another, were lent to it; see `backfill`.
        near: Hosts it would like, for their data.
        barred_why: Why it cannot run on a host that its shape bars, as a sentence.
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
    awaits: bool = False
    started_s: float | None = None
    attained_s: float = 0.0
    idle: bool = False
    can_hibernate: bool = True
    hibernated: bool = False
    expected_s: float | None = None
    expected_at_most_s: float | None = None
    time_limit_s: float | None = None
    deadline_s: float | None = None
    lent_until_s: float | None = None
    near: frozenset[HostId] = frozenset()
    barred_why: str = ""
    scheduler_host: HostId | None = None

    def has_overrun(self, now_s: float) -> bool:
        """Whether what it was lent is due by now."""
        return self.lent_until_s is not None and self.lent_until_s <= now_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """The pool at one moment.

    Attributes:
        now_s: The moment, on the axis of every other time here.
        tree: The queues, a leaf for every user that has a claim.
        usage: Decayed device-seconds by queue, inner ones included.
        bookings: Devices reserved for queues, in order of their windows; the tree's guarantees
            are raised already by those that are open.
    """

    now_s: float
    tree: QueueTree
    hosts: tuple[HostShape, ...]
    claims: tuple[ClaimView, ...]
    rules: Rules = field(default_factory=Rules)
    usage: Mapping[str, float] = field(default_factory=dict)
    bookings: tuple[Booking, ...] = ()
