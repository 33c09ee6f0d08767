"""What the agent sees of one process it keeps, and how that reads in a report. Pure.

`table.Table` holds one `Seen` a process; every change replaces it by a new one.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from jupyter_gpupool.pool.ids import DeviceUuid, LeaseId
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.protocol.keeping import Keeping
from jupyter_gpupool.protocol.launch import Orders, SchedulerState, WorkerState
from jupyter_gpupool.protocol.link import (
    HolderReport,
    ProcessPhase,
    SchedulerReport,
    WorkerReport,
)

from .keys import ProcessKey
from .procfs import ProcessId
from .restarts import NO_HISTORY, History


class Stage(StrEnum):
    """Where a process is in the agent's hands."""

    FORKING = "forking"
    """Asked of the zygote; there may or may not be a process."""
    ALIVE = "alive"
    AGAIN = "again"
    """Ended by itself and fully gone; to be forked again."""
    RETIRED = "retired"
    FAILED = "failed"
    STOPPING = "stopping"
    """Being ended with all that belongs to it."""
    FREEING = "freeing"
    """Gone; its device is not proven free yet."""


GOING = frozenset({Stage.STOPPING, Stage.FREEING})
"""Stages that nothing wanted can turn back."""
_HEARD = frozenset({Stage.FORKING, Stage.ALIVE})
"""Stages in which what a process says still counts."""

_MOST_NAMED = 512
"""Of a scheduler's workers that go: it keeps no more of those that have gone either."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
"""As the link has it for leases; anything else names none."""
_LONGEST_TEXT = 1000
"""Of what a user's process says. All that is said here goes into one report of the host, and what
one user says must not make that too large to be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One process as the agent sees it.

    Attributes:
        device: The lease's device, the first of several; None for a scheduler and a holder.
        further: Its other devices.
        share: Thousandths of its device that are its.
        uid: Whose process it is; None if its record was damaged.
        process: Its process, which may have ended; None until its pid is known.
        used: Whether any process of it may have come to its device.
        registered: A worker, or the holder, that its scheduler knows.
        still_named: Its scheduler may still name an earlier process of it.
        closing: Why a worker said it would go; "" while it stays.
        killed_for: Why the agent itself killed it; "" if it did not.
        over_share: That it takes more than its part of its device, in a sentence, else "".
        stopped: What its user is told while somebody has stopped it; "" while it runs.
        failed_at_s: Monotonic; when it was given up.
        gone_at_s: Monotonic; since when no process of it is left.
        baselines: Memory in use on each of its devices before the lease; None if unknown.
        orders: What it was last told.
        names_retiring: Workers, on any host, that a scheduler says hand over.
        names_retired: Workers, on any host, that a scheduler says have handed over.
        keeping: Where a scheduler says the claim's results are; None until it has said so.
    """

    key: ProcessKey
    stage: Stage
    uid: int | None
    device: DeviceUuid | None = None
    further: tuple[DeviceUuid, ...] = ()
    share: int = WHOLE_DEVICE
    process: ProcessId | None = None
    used: bool = False
    address: str | None = None
    dashboard_port: int | None = None
    registered: bool = False
    still_named: bool = False
    retiring: bool = False
    retired: bool = False
    closing: str = ""
    killed_for: str = ""
    stopped: str = ""
    over_share: str = ""
    history: History = NO_HISTORY
    problem: str = ""
    failed_at_s: float | None = None
    gone_at_s: float | None = None
    baselines: tuple[int | None, ...] = ()
    memory_limit_bytes: int | None = None
    orders: Orders | None = None
    names_retiring: tuple[str, ...] = ()
    names_retired: tuple[str, ...] = ()
    keeping: Keeping | None = None

    @property
    def devices(self) -> tuple[DeviceUuid, ...]:
        """All its devices; none of a scheduler or a holder."""
        return () if self.device is None else (self.device, *self.further)

    def baseline_on(self, device: DeviceUuid) -> int | None:
        """Memory in use on one of its devices before the lease; None if unknown."""
        return dict(zip(self.devices, self.baselines, strict=False)).get(device)

    @property
    def pid(self) -> int | None:
        """The pid of a process that may still run."""
        runs = self.stage in (Stage.ALIVE, Stage.STOPPING)
        return self.process.pid if runs and self.process is not None else None

    @property
    def may_use_device(self) -> bool:
        """Whether anything of it can be on its device; not if it was given up before it ran."""
        settled = self.stage in (Stage.FAILED, Stage.RETIRED)
        return self.device is not None and not (settled and not self.used)

    @property
    def listens(self) -> bool:
        """Whether it is a scheduler that workers can reach."""
        return self.stage is Stage.ALIVE and self.address is not None


def forking(seen: Seen) -> Seen:
    """It is being forked: nothing that an earlier process of it said holds any more."""
    return replace(
        seen,
        stage=Stage.FORKING,
        process=None,
        address=None,
        dashboard_port=None,
        registered=False,
        still_named=seen.used,
        closing="",
        killed_for="",
        stopped="",
        over_share="",
        orders=None,
        keeping=None,
    )


def forked(seen: Seen, process: ProcessId) -> Seen:
    """It runs. It may have said something before its pid was known, and may be unwanted already."""
    stage = Stage.ALIVE if seen.stage is Stage.FORKING else seen.stage
    problem = "" if seen.registered else seen.problem
    return replace(seen, stage=stage, process=process, used=True, problem=problem)


def failed(seen: Seen, problem: str, now_s: float) -> Seen:
    """It is given up."""
    return replace(
        seen, stage=Stage.FAILED, registered=False, address=None, problem=problem, failed_at_s=now_s
    )


def scheduler_said(seen: Seen, state: SchedulerState) -> Seen:
    """A scheduler tells where it listens, or why it cannot go on, and of its workers."""
    if seen.stage not in _HEARD:
        return seen
    return replace(
        seen,
        address=state.address or None,
        dashboard_port=state.dashboard_port,
        problem=state.problem[:_LONGEST_TEXT],
        names_retiring=_last_names(state.retiring),
        names_retired=_last_names(state.retired),
        keeping=state.keeping,
    )


def _last_names(said: tuple[str, ...]) -> tuple[str, ...]:
    named = dict.fromkeys(name for name in said if _NAME.fullmatch(name))
    return tuple(named)[-_MOST_NAMED:]


def worker_named_by_scheduler(seen: Seen, state: SchedulerState) -> Seen:
    """A scheduler tells of its workers; what it says of this one.

    It can make a worker registered but not undo it: both speak on sockets of their own, so an older
    line of the one may come after a newer one of the other. A busy scheduler names a dead worker
    for a while, so a worker forked again counts as named only after it was not.
    """
    if seen.stage not in _HEARD:
        return seen
    name = seen.key.lease_id
    still_named = seen.still_named and name in state.workers
    registered = seen.registered or (name in state.workers and not still_named)
    return replace(
        seen,
        registered=registered,
        still_named=still_named,
        problem=_problem_of(seen, registered=registered),
        retiring=name in state.retiring,
        retired=seen.retired or name in state.retired,
    )


def worker_said(seen: Seen, state: WorkerState) -> Seen:
    """A worker tells that it is registered, or why it goes."""
    if seen.stage not in _HEARD:
        return seen
    stays = seen.registered and not state.closing
    registered = state.registered or stays
    problem = _problem_of(seen, registered=registered)
    closing = state.closing[:_LONGEST_TEXT]
    return replace(seen, registered=registered, closing=closing, problem=problem)


def _problem_of(seen: Seen, *, registered: bool) -> str:
    """A worker that works has none; but why the one before it ended is told until then."""
    return "" if registered and seen.stage is Stage.ALIVE else seen.problem


def phase_of(seen: Seen) -> ProcessPhase:
    """How far it is, in the words of the link."""
    if seen.stage is Stage.FORKING and seen.history.restarts:
        return ProcessPhase.RESTARTING
    if seen.stage is not Stage.ALIVE:
        return _PHASES[seen.stage]
    if seen.retired or seen.retiring:
        return ProcessPhase.RETIRING
    if seen.registered or seen.address is not None:
        return ProcessPhase.RUNNING
    return ProcessPhase.RESTARTING if seen.history.restarts else ProcessPhase.STARTING


_PHASES = {
    Stage.FORKING: ProcessPhase.STARTING,
    Stage.AGAIN: ProcessPhase.RESTARTING,
    Stage.RETIRED: ProcessPhase.RETIRED,
    Stage.FAILED: ProcessPhase.FAILED,
    Stage.STOPPING: ProcessPhase.STOPPING,
    Stage.FREEING: ProcessPhase.STOPPING,
}


def scheduler_report(seen: Seen) -> SchedulerReport:
    """What the manager is told of a scheduler."""
    return SchedulerReport(
        claim_id=seen.key.claim_id,
        start=seen.key.start,
        phase=phase_of(seen),
        pid=seen.pid,
        address=seen.address,
        dashboard_port=seen.dashboard_port,
        problem=seen.problem or seen.stopped,
        retiring=tuple(LeaseId(name) for name in seen.names_retiring),
        retired=tuple(LeaseId(name) for name in seen.names_retired),
        keeping=seen.keeping,
    )


def holder_report(seen: Seen) -> HolderReport:
    """What the manager is told of a holder."""
    return HolderReport(
        claim_id=seen.key.claim_id,
        start=seen.key.start,
        phase=phase_of(seen),
        pid=seen.pid,
        problem=seen.problem or seen.stopped,
    )


def worker_report(seen: Seen) -> WorkerReport:
    """What the manager is told of a worker."""
    assert seen.key.lease_id is not None
    assert seen.device is not None, "a worker has a device from its first moment"
    return WorkerReport(
        claim_id=seen.key.claim_id,
        start=seen.key.start,
        lease_id=seen.key.lease_id,
        device=seen.device,
        further=seen.further,
        phase=phase_of(seen),
        pid=seen.pid,
        restarts=seen.history.restarts,
        problem=seen.problem or seen.stopped or seen.over_share,
    )
