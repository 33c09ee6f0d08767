"""How an agent has a process forked, and what that process and the agent then say to each other.

Standard library only, as are `pool.dask_cuda`, `keeping` and `activity`: `runtime` reads all of
them inside any Python environment.

Three conversations, each of JSON lines:

1. agent ↔ zygote, on a socket pair: `Fork` (with the descriptors of `ForkDescriptors`, in that
   order, as SCM_RIGHTS) → `Forked`; and `Exited` whenever a child of the zygote has ended.
2. agent → child, once: a `Launch` in a sealed memory file. It holds secrets: the zygote passes the
   descriptor on unread and closes it; the child reads it after it has become its user.
3. child ↔ agent, on the agent's Unix socket, opened by the child and opened again whenever it is
   lost: `Hello` (a worker adds its devices' lock descriptors as SCM_RIGHTS), then `SchedulerState`
   or `WorkerState` whenever it changed, whole each time, and a scheduler's `Lively` once a second.
   The agent answers with `Orders`, whole each time. A lost, repeated or late line changes nothing.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from jupyter_gpupool.pool.dask_cuda import DaskCudaOptions

from .activity import Activity
from .keeping import Keeping, Wish, keeping_of


class Role(StrEnum):
    """What a forked process becomes."""

    SCHEDULER = "scheduler"
    WORKER = "worker"
    HOLDER = "holder"
    """Keeps the results of a claim that hibernates, without a device and without reading them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One JSON line; its first key names its class, so that a reader can tell them apart."""

    def encode(self) -> bytes:
        """The line, with its newline."""
        return json.dumps({"is": type(self).__name__, **asdict(self)}).encode() + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork(Line):
    """Agent → zygote: fork a child that becomes this user. Holds no secret.

    Attributes:
        ticket: Repeated in the answer.
        uid: None keeps the zygote's own user.
        descriptors: Names of the descriptors sent along, in order: see `FORK_DESCRIPTORS`.
    """

    ticket: int
    uid: int | None
    gid: int | None
    groups: tuple[int, ...]
    descriptors: tuple[str, ...]


FORK_DESCRIPTORS = ("launch", "log", "lock")
"""`launch`: memory file with the `Launch`. `log`: becomes stdout and stderr. `lock`, `lock-1` and
so on: the host-wide locks of a worker's devices, open for life so that they outlive a dead agent.
"""
MOST_LOCKS = 16
"""Devices of one worker."""
MOST_DESCRIPTORS = 2 + MOST_LOCKS


def lock_names(count: int) -> tuple[str, ...]:
    """What the locks of so many devices are called, in the devices' order."""
    return tuple(f"lock-{number}" if number else "lock" for number in range(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked(Line):
    """Zygote → agent: the child's pid, or why there is none."""

    ticket: int
    pid: int | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited(Line):
    """Zygote → agent: a child has ended. `status` is an exit code, or -N for signal N."""

    pid: int
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm(Line):
    """Zygote → agent, once: everything is imported and it is single-threaded, or why not."""

    problem: str = ""
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """One party's credentials within a claim, as PEM texts."""

    ca: str = field(repr=False)
    certificate: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLaunch(DaskCudaOptions):
    """What a worker has to know.

    Attributes:
        device: UUID for CUDA_VISIBLE_DEVICES; a simulated one sets it to "".
        further: Those of its other devices.
        simulated: No NVML and no CUDA: only DeviceHostFile and PreImport of dask-cuda run.
        device_memory_bytes: Its (first) device's own memory (a MIG instance's, not its parent's);
            its part of that, if others may have the rest.
        is_part: Whether they may.
        cpu_affinity: Logical CPUs to stay on; empty leaves it to dask-cuda.
    """

    device: str
    simulated: bool
    device_memory_bytes: int
    memory_limit_bytes: int
    further: tuple[str, ...] = ()
    is_part: bool = False
    cpu_affinity: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerLaunch:
    """What a scheduler has to know.

    Attributes:
        dashboard_prefix: Secret URL prefix of everything its HTTP server answers; "" is none.
    """

    dashboard_prefix: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderLaunch:
    """What a holder has to know.

    Attributes:
        memory_bytes: Results it may have in memory at any time. What is beyond, and what is there
            for longer, goes to files in the claim's folder.
        quota_bytes: Results it keeps in all.
    """

    memory_bytes: int
    quota_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch(Line):
    """Everything a child needs. Secret: never in argv, environment, log or file.

    Attributes:
        name: The worker's name on its scheduler: the lease's id, or `HOLDER_NAME`. "" for a
            scheduler.
        listen: Address to listen on, without a port.
        folder: Working folder of the claim on this host; exists, belongs to the user.
        temporary: What its folder `tmp`, for temporary files, is called; "" leaves TMPDIR as it is.
        agent_socket: Path of the agent's Unix socket.
        env: Variables to set; secret as well.
        protocol: "tls" or "ucxx".
    """

    role: Role
    claim_id: str
    lease_id: str
    name: str
    listen: str
    protocol: str
    folder: str
    agent_socket: str
    tls: Tls = field(repr=False)
    env: dict[str, str] = field(default_factory=dict, repr=False)
    temporary: str = ""
    scheduler_address: str | None = None
    worker: WorkerLaunch | None = None
    scheduler: SchedulerLaunch | None = None
    holder: HolderLaunch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello(Line):
    """Child → agent, first on every connection. The agent checks pid and user by the socket."""

    role: Role
    claim_id: str
    lease_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerState(Line):
    """Scheduler → agent: all that matters of it.

    Attributes:
        workers: Names (lease ids) of its registered workers.
        retiring: Names that are handing over their results.
        retired: Names that have handed over and are gone; a worker so named is not forked again.
        problem: Why it cannot go on; "" while well.
        keeping: Where the claim's results are.
    """

    address: str
    dashboard_port: int | None
    workers: tuple[str, ...]
    retiring: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    problem: str = ""
    keeping: Keeping = field(default_factory=Keeping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lively(Line):
    """Scheduler → agent, once a second: what goes on in it."""

    activity: Activity


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState(Line):
    """Worker or holder → agent: whether it is registered, or why it goes."""

    registered: bool
    closing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders(Line):
    """Agent → child, whole each time.

    Attributes:
        scheduler_address: For a worker that was launched before it was known.
        retire: For a scheduler: names of workers to retire.
        keep_workers: For a scheduler: retire workers of its own choice until this many stay; None
            leaves it alone.
        wish: For a scheduler: what to do with the claim's results.
        quota_bytes: For a scheduler: how much of them the claim may keep; None is without bound.
    """

    scheduler_address: str | None = None
    retire: tuple[str, ...] = ()
    keep_workers: int | None = None
    wish: Wish = Wish.AWAKE
    quota_bytes: int | None = None


_LINES: dict[str, type[Line]] = {
    cls.__name__: cls
    for cls in (
        Fork,
        Forked,
        Exited,
        Warm,
        Launch,
        Hello,
        SchedulerState,
        Lively,
        WorkerState,
        Orders,
    )
}


def decode(line: bytes | str) -> Line:
    """Read one line back as the class it names. Unknown keys are left out.

    Raises:
        ValueError: If it is no line of this protocol.
    """
    try:
        values = json.loads(line)
        cls = _LINES[values.pop("is")]
        line_read: Line = _build(cls, values)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"not a line of the launch protocol: {type(error).__name__}") from error
    return line_read


_NESTED: dict[str, type] = {
    "tls": Tls,
    "worker": WorkerLaunch,
    "scheduler": SchedulerLaunch,
    "holder": HolderLaunch,
    "activity": Activity,
}

_ENUMS: dict[str, type[StrEnum]] = {"role": Role, "wish": Wish}


def _build(cls: Any, values: dict[str, Any]) -> Any:
    known = {f.name for f in fields(cls)}
    return cls(**{key: _value(key, value) for key, value in values.items() if key in known})


def _value(key: str, value: Any) -> Any:
    if key in _NESTED and isinstance(value, dict):
        return _build(_NESTED[key], value)
    if key == "keeping":
        return keeping_of(value)
    if key in _ENUMS:
        return _ENUMS[key](value)
    return tuple(value) if isinstance(value, list) else value
