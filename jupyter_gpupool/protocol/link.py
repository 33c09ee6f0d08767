"""The link between the manager and an agent: a WebSocket that the agent opens, level-triggered.

The manager sends `Desired`: all that should run on the host, with a generation. The agent makes it
so and sends `HostReport`: all that is. Each message is whole; a lost, repeated or late one changes
nothing. `Joined` answers the first report. `LogQuery` and `LogAnswer` are a question beside all
that: whoever asked waits for a moment and does without. `LookNow` asks for a report. Models hold
secrets in fields that repr leaves out.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from jupyter_gpupool.pool.device import Device, DeviceSample, DeviceState
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, KernelId, LeaseId, UserName
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.request import WorkerOptions
from jupyter_gpupool.pool.signals import Signal

from .keeping import Keeping, Wish
from .using import ProcessLog

LINK_VERSION = 2
"""Raised when a message changes so that an older side would misread it."""

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Ids become names of files that a root agent makes and removes."""


class Message(BaseModel):
    """Base of all link messages: frozen, and tolerant of fields a newer side adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class TlsCredentials(Message):
    """One party's credentials within a claim, as PEM texts."""

    ca: str = Field(repr=False)
    certificate: str = Field(repr=False)
    key: str = Field(repr=False)


class WantedWorker(Message):
    """A worker that should run, on its lease's device or devices.

    Attributes:
        further: Its other devices, if it has several.
        share: Thousandths of its device that are its; others may have the rest.
        retire: It should hand its results over and go; the agent reports it RETIRED.
    """

    lease_id: LeaseId = Field(pattern=_NAME)
    device: DeviceUuid
    further: tuple[DeviceUuid, ...] = ()
    share: int = Field(default=WHOLE_DEVICE, ge=1, le=WHOLE_DEVICE)
    retire: bool = False

    @property
    def devices(self) -> tuple[DeviceUuid, ...]:
        """All its devices."""
        return (self.device, *self.further)


class WantedScheduler(Message):
    """The claim's scheduler should run on this host.

    Attributes:
        keep_workers: If set, the scheduler retires workers of its own choice until this many
            stay, and the agent reports them RETIRED.
        retire: Workers on other hosts that should hand their results over and go; those on this
            host say so themselves.
        wish: What it should do with the claim's results.
        quota_bytes: How much of them the claim may keep; None is without bound.
    """

    credentials: TlsCredentials = Field(repr=False)
    dashboard_prefix: str = Field(repr=False)
    keep_workers: int | None = None
    retire: tuple[LeaseId, ...] = ()
    wish: Wish = Wish.AWAKE
    quota_bytes: int | None = None


class WantedHolder(Message):
    """The claim's results should have a place here that needs no device, beside its scheduler.

    Attributes:
        memory_bytes: Results it keeps in memory; the others go to its disk.
        quota_bytes: Results it keeps in all.
    """

    memory_bytes: int = Field(ge=0)
    quota_bytes: int = Field(ge=0)


class WantedKernel(Message):
    """A kernel that uses a claim: whoever runs on its host sees whether it is still there.

    Attributes:
        host, boot_id, pid, started: Which process it is, as `RuntimeFile` says it.
    """

    kernel_id: KernelId
    host: str
    boot_id: str
    pid: int
    started: int


class WantedClaim(Message):
    """All that a claim should have on this host.

    Attributes:
        start: Which try this is. Processes of an earlier start are stopped, not adopted.
        os_user: Whose processes they are; None is the agent's own user.
        environment: Name of a Python environment of the host; "" is its default, and
            `OWN_ENVIRONMENT` the one that `interpreter` leads to.
        interpreter: Path of the Python of the kernel that asked; "" if it does not matter.
        scheduler_address: None until the scheduler listens; an agent that has the claim's
            scheduler itself need not wait for it.
        kernels: Those that use it, on whatever host.
    """

    claim_id: ClaimId = Field(pattern=_NAME)
    start: int
    owner: UserName
    os_user: str | None
    environment: str
    interpreter: str = ""
    options: WorkerOptions
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    scheduler: WantedScheduler | None = None
    scheduler_address: str | None = None
    worker_credentials: TlsCredentials = Field(repr=False)
    workers: tuple[WantedWorker, ...] = ()
    holder: WantedHolder | None = None
    kernels: tuple[WantedKernel, ...] = ()


class Desired(Message):
    """Manager → agent: everything that should run on this host, and nothing else should."""

    type: Literal["desired"] = "desired"
    generation: int
    claims: tuple[WantedClaim, ...] = ()


class Joined(Message):
    """Manager → agent: the host is in the pool.

    Attributes:
        manager_time: For the agent to notice a clock that is off.
        orphan_after_s: How long an agent that never hears the manager again keeps things alive.
    """

    type: Literal["joined"] = "joined"
    link_version: int = LINK_VERSION
    host_id: HostId
    manager_time: datetime
    orphan_after_s: float


class Refused(Message):
    """Manager → agent, then it hangs up: why the host may not join."""

    type: Literal["refused"] = "refused"
    reason: str
    hint: str = ""


MOST_LOG_LINES = 1000
"""Of one process, in one answer."""
MOST_LOG_CHARACTERS = 1_000_000
"""Of one answer: a larger message would end the link. Older lines are left out first."""


class LogQuery(Message):
    """Manager → agent: what did these processes say last?

    Attributes:
        id: Stands in the answer again.
        processes: "scheduler" or leases' ids, of this claim, whether they run or have ended. Those
            of which the host keeps nothing are left out of the answer.
        lines: How many of the last lines of each.
    """

    type: Literal["log-query"] = "log-query"
    id: int
    claim_id: ClaimId = Field(pattern=_NAME)
    processes: tuple[Annotated[str, Field(pattern=_NAME)], ...]
    lines: int = Field(ge=1, le=MOST_LOG_LINES)


class LookNow(Message):
    """Manager → agent: report at once, for something is due that depends on what claims do."""

    type: Literal["look-now"] = "look-now"


class LogAnswer(Message):
    """Agent → manager: the last lines that were asked for, `MOST_LOG_CHARACTERS` in all."""

    type: Literal["log-answer"] = "log-answer"
    id: int
    logs: tuple[ProcessLog, ...] = ()


class ProcessPhase(StrEnum):
    """How far a scheduler or worker process is, as the agent sees it."""

    STARTING = "starting"
    RUNNING = "running"
    """A scheduler listens; a worker is registered with its scheduler."""
    RESTARTING = "restarting"
    """A worker that ended by itself is being forked again."""
    RETIRING = "retiring"
    RETIRED = "retired"
    """Its results are handed over and it is gone; its lease may end."""
    FAILED = "failed"
    """It will not be tried again; `problem` holds the reason with its last lines."""
    STOPPING = "stopping"
    """No longer wanted, still being stopped or its device still being verified."""


class SchedulerReport(Message):
    """A scheduler on this host. One that is gone and not wanted is left out.

    Attributes:
        problem: Of a running one, what keeps it from its work; else why it cannot go on.
        retiring: Its workers, on any host, that hand their results over now.
        retired: Its workers, on any host, that have done so; their leases may end.
        keeping: Where the claim's results are; None until it has said so to this agent.
    """

    claim_id: ClaimId
    start: int
    phase: ProcessPhase
    pid: int | None = None
    address: str | None = None
    dashboard_port: int | None = None
    problem: str = ""
    retiring: tuple[LeaseId, ...] = ()
    retired: tuple[LeaseId, ...] = ()
    keeping: Keeping | None = None


class HolderReport(Message):
    """A holder on this host. One that is gone and not wanted is left out."""

    claim_id: ClaimId
    start: int
    phase: ProcessPhase
    pid: int | None = None
    problem: str = ""


class WorkerReport(Message):
    """A worker on this host. One whose devices are proven free is left out."""

    claim_id: ClaimId
    start: int
    lease_id: LeaseId
    device: DeviceUuid
    further: tuple[DeviceUuid, ...] = ()
    phase: ProcessPhase
    pid: int | None = None
    restarts: int = 0
    problem: str = ""


class DeviceReport(Message):
    """A device, what stands against leasing it, and its last sample."""

    device: Device
    state: DeviceState
    sample: DeviceSample | None = None


class EnvironmentReport(Message):
    """A Python environment that the host offers.

    Attributes:
        versions: Of "python" and of packages that are installed there; empty until it is known.
        problem: Why nothing can run in it, else "".
        is_warm: A process in it starts at once; else its first one takes seconds.
    """

    name: str
    versions: dict[str, str] = Field(default_factory=dict)
    problem: str = ""
    is_warm: bool = False


class ClaimUse(Message):
    """What a host saw of a claim's processes there in a window of time.

    A signal is active if it was so at any time of the window, quiet if it was looked at all the
    time and never active. Those in neither are unknown: nobody looked, or nothing here can tell.

    Attributes:
        begin_ms, end_ms: The window, by the monotonic clock of the host's boot.
        has_scheduler: The claim's scheduler is here; only then anything is said of tasks, calls and
            clients.
        leases: The leases here, of whose devices all is told that is told of devices.
        gpu_peak: The highest utilisation of any of their devices, in thousandths; None is unknown.
        gpu_mean: Their mean, in thousandths; None is unknown.
        held_bytes: Memory the claim holds on them at the end; None is unknown.
        clients: Dask clients that are connected at the end; None is unknown.
        stuck: Tasks that wait for a worker such as the claim does not have.
        actors: Objects that live in workers, and cannot be kept without them.
    """

    claim_id: ClaimId
    begin_ms: int
    end_ms: int
    has_scheduler: bool = False
    leases: tuple[LeaseId, ...] = ()
    active: frozenset[Signal] = frozenset()
    quiet: frozenset[Signal] = frozenset()
    gpu_peak: int | None = None
    gpu_mean: int | None = None
    held_bytes: int | None = None
    clients: int | None = None
    stuck: int = 0
    actors: int = 0


class GoneKernel(Message):
    """A kernel of this host that has ended."""

    claim_id: ClaimId
    kernel_id: KernelId
    pid: int
    started: int


class HostReport(Message):
    """Agent → manager: everything that is. The first one on a connection joins the host.

    Attributes:
        generation: The last `Desired` that was made so; 0 before the first on this connection.
        environments: Names of the Python environments it offers; the first is the default.
        environment_reports: More about each of them.
        kernel_environments: Whether a claim may run in the environment of the kernel that asked.
        problem: One sentence when the host cannot work as it should, else "".
        can_start: Whether it can start processes now; if not, `problem` says why.
        life: Which boot of the host the windows of `uses` are of.
        uses: What its claims did since the last report, oldest first; the first report on a
            connection says some of what was said before once more.
        gone_kernels: Kernels of its claims that ran on this host and have ended.
    """

    type: Literal["report"] = "report"
    link_version: int = LINK_VERSION
    host_id: HostId
    name: str
    address: str
    agent_pid: int
    agent_version: str
    generation: int
    at: datetime
    cpus: int
    memory_bytes: int
    labels: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    environment_reports: tuple[EnvironmentReport, ...] = ()
    kernel_environments: bool = False
    devices: tuple[DeviceReport, ...] = ()
    schedulers: tuple[SchedulerReport, ...] = ()
    holders: tuple[HolderReport, ...] = ()
    workers: tuple[WorkerReport, ...] = ()
    problem: str = ""
    can_start: bool = True
    life: str = ""
    uses: tuple[ClaimUse, ...] = ()
    gone_kernels: tuple[GoneKernel, ...] = ()


ToAgent = TypeAdapter[Desired | Joined | Refused | LogQuery | LookNow](
    Annotated[Desired | Joined | Refused | LogQuery | LookNow, Field(discriminator="type")]
)
"""Reads what a manager says."""
FromAgent = TypeAdapter[HostReport | LogAnswer](
    Annotated[HostReport | LogAnswer, Field(discriminator="type")]
)
"""Reads what an agent says."""
