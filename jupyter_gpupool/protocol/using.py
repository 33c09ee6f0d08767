"""What is said while a claim is used: from which kernels, in which environment, why it waits.

Routes, all under /api/v1:

    PUT    /claims/{id}/kernels/{kernel}    KernelBody → ClaimView        owner
    DELETE /claims/{id}/kernels/{kernel}    → 204, also a second time      owner
    POST   /kernels/activity                ActivityBody → 204             user, for their own
    POST   /claims/{id}/keep_alive          KeepAliveBody → ClaimView      owner, admin
    GET    /claims/{id}/explanation         → ExplanationView              owner, admin
    GET    /claims/{id}/logs?process=&lines=  → LogsView                   owner
    GET    /environments                    → [EnvironmentView]            user
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.ids import ClaimId

from .bodies import Body, View, Words
from .estimates import StartView

OWN_ENVIRONMENT = "kernel"
"""The name by which a claim asks for the very environment its kernel runs in."""
_Path = Annotated[str, Field(max_length=4096)]
_Seconds = Annotated[float, Field(ge=0, le=315_360_000)]


class UsedFrom(Body):
    """The Python that uses the claim.

    Attributes:
        versions: Of "python" and of the packages that have to agree (`pool.agreement`).
        interpreter: Path of it, for a claim in the kernel's own environment.
        host: `host_mark` of the machine it runs on.
    """

    versions: dict[Words, Words] = Field(default_factory=dict, max_length=50)
    interpreter: _Path = ""
    host: Words = ""


class KernelBody(Body):
    """A Python process that uses a claim from now on.

    Attributes:
        host, boot_id, pid, started: Which process it is, in the words of `RuntimeFile`, so that
            those who run beside it can tell whether it is still there.
        name: What people know it by, such as the notebook's path; "" if unknown.
    """

    host: Words
    boot_id: Words
    pid: Annotated[int, Field(gt=0, lt=2**31)]
    started: Annotated[int, Field(ge=0, lt=2**53)]
    name: Words = ""


class KernelState(StrEnum):
    """What a kernel does, as far as anybody knows."""

    BUSY = "busy"
    IDLE = "idle"
    STARTING = "starting"
    DEAD = "dead"
    """It is gone for good."""
    UNKNOWN = "unknown"


class KernelActivity(Body):
    """What a Jupyter server saw of a kernel.

    Attributes:
        quiet_for_s: Since the end of the last thing a person had it do; Lab's own polls and debug
            messages are none. 0 while busy; None if unknown. A duration, for clocks differ.
    """

    kernel: Words
    state: KernelState
    quiet_for_s: _Seconds | None = None


class ActivityBody(Body):
    """What a Jupyter server saw of its kernels; those that use no claim are ignored."""

    kernels: Annotated[tuple[KernelActivity, ...], Field(max_length=1000)]


class KernelView(View):
    """A Python process that uses a claim.

    Attributes:
        quiet_since: As the manager reckons from what it was told last; None while busy or unknown.
        reported_at: When a Jupyter server last told of it; None if none ever did.
    """

    id: str
    name: str
    host: str
    boot_id: str
    pid: int
    started: int
    attached_at: datetime
    state: KernelState = KernelState.UNKNOWN
    quiet_since: datetime | None = None
    reported_at: datetime | None = None


class KeepAliveBody(Body):
    """Do not take the claim as idle for this long from now on; 0 takes it back."""

    for_s: _Seconds
    reason: Words = ""


class ExplanationView(StartView):
    """Why a claim is where it is.

    Attributes:
        place: Its place in line, from 1; None if it does not wait, or could not start anyway.
        reason: The binding constraint while it waits, else the reason of its last change.
        never: It cannot start as the pool is now.
        ahead: How many claims are before it.
        free: Free devices of the pool that would do for it.
        devices: Devices of the pool that would do for it, free or not.
        lines: The same as sentences for a person, most important first.
    """

    claim: ClaimId
    name: str
    phase: Phase
    place: int | None = None
    reason: str
    never: bool = False
    ahead: int = 0
    free: int = 0
    devices: int = 0
    lines: tuple[str, ...] = ()


class ProcessLog(View):
    """The last lines of one process of a claim.

    Attributes:
        process: "scheduler", or a lease's id.
        problem: Why there are no lines, else "".
    """

    process: str
    host: str
    lines: tuple[str, ...] = ()
    problem: str = ""


class LogsView(View):
    """The last lines of a claim's processes, its scheduler first."""

    claim: ClaimId
    processes: tuple[ProcessLog, ...] = ()


class EnvironmentView(View):
    """A Python environment that workers can run in.

    Attributes:
        name: What `environment=` takes.
        hosts: Names of the hosts that offer it.
        is_default: What a claim gets that names none.
        versions: Of "python" and of the packages that have to agree; of one of its hosts. Empty
            until its zygote was warm once.
        problem: Why it cannot be used anywhere, else "".
    """

    name: str
    hosts: tuple[str, ...] = ()
    is_default: bool = False
    versions: dict[str, str] = Field(default_factory=dict)
    problem: str = ""
