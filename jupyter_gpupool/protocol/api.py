"""The HTTP API's bodies, version 1: what clients send and what they are shown.

Paths and rights stand in docs/architecture.md; errors are `Problem`s (RFC 9457).
"""

from dataclasses import fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from jupyter_gpupool.pool.agreement import that_matter
from jupyter_gpupool.pool.claim import Phase, StoryLine
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.device import Device, DeviceProcess, Health
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.event import EventKind
from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, LeaseId, UserName
from jupyter_gpupool.pool.lease import LeasePhase
from jupyter_gpupool.pool.request import ClaimRequest, OnIdle, Priority, WorkerBounds, WorkerOptions
from jupyter_gpupool.pool.units import parse_bytes
from jupyter_gpupool.pool.worker_devices import MOST_DEVICES, worker_devices

from .bodies import PRINTABLE, Body, View, Words
from .estimates import ComingView, StartView
from .evidence_view import EvidenceView
from .keeping_view import KeepingView
from .reserving import ReservationView
from .using import KernelView, UsedFrom
from .warned import WarnedView, WarningView

API = "/api/v1"
IDEMPOTENCY_KEY = "Idempotency-Key"
"""Header of every POST: the same key a second time does nothing new."""


_Size = Annotated[str, Field(max_length=40, pattern=PRINTABLE)]
_Modules = Annotated[tuple[Words, ...], Field(max_length=100)]
_MOST_ENV = 65_536
"""Characters of all names and values together: a claim is kept in memory as long as it lives."""


class Workers(Body):
    """How many workers: starts with `min` together, grows to `max`."""

    min: Annotated[int, Field(ge=0, strict=True)]
    max: Annotated[int, Field(ge=0, strict=True)]


class ClaimBody(Body):
    """The terms of a new claim. Times are seconds."""

    workers: Workers
    gpus_per_worker: Annotated[float, Field(gt=0, le=MOST_DEVICES)] = 1
    """Whole devices of one host, or a part of one below 1; others may hold the rest of it."""
    cpus: Annotated[float, Field(gt=0, le=4096)] | None = None
    """Cores of its host that each worker is counted for; none if they are not to be counted."""
    name: Words = ""
    model: Words = ""
    gpu_memory: _Size = ""
    """How much memory of a device a worker gets: a part of one, whose rest others may hold."""
    min_gpu_memory: _Size = ""
    """Least memory that a device has in all."""
    queue: Words = ""
    priority: Words = Priority.INTERACTIVE
    """A class that the pool's policy defines: interactive, normal and batch always are."""
    environment: Words = ""
    expected_s: Annotated[float, Field(gt=0, le=315_360_000)] | None = None
    time_limit_s: Annotated[float, Field(gt=0, le=315_360_000)] | None = None
    deadline: datetime | None = None
    near: Words = ""
    on_idle: OnIdle | None = None
    """What becomes of it when it is idle, within the bounds of the policy."""
    idle_after_s: Annotated[float, Field(gt=0, le=315_360_000)] | None = None
    nthreads: Annotated[int, Field(strict=True)] = 1
    memory: _Size = ""
    device_memory_limit: _Size = "default"
    rmm_pool_size: _Size | None = None
    rmm_maximum_pool_size: _Size | None = None
    rmm_managed_memory: bool = False
    rmm_async: bool = False
    rmm_release_threshold: _Size | None = None
    rmm_track_allocations: bool = False
    rmm_allocator_external_lib_list: _Modules = ()
    enable_cudf_spill: bool = False
    cudf_spill_stats: Annotated[int, Field(strict=True)] = 0
    pre_import: _Modules = ()
    protocol: _Size = "tls"
    env: dict[str, str] = Field(default_factory=dict, max_length=1000, repr=False)
    used_from: UsedFrom | None = None
    """What the claim will be used from, to be set against the workers' environment."""

    def to_request(self) -> ClaimRequest:
        """The pool's own terms.

        Raises:
            BadRequest: If a term makes no sense; `field` names it.
        """
        if sum(len(name) + len(value) for name, value in self.env.items()) > _MOST_ENV:
            raise BadRequest(
                "The variables of env are too long together.",
                field="env",
                hint=f"Keep them within {_MOST_ENV} characters; put more into a file.",
            )
        same = {each.name for each in fields(WorkerOptions)} & type(self).model_fields.keys()
        options = {name: getattr(self, name) for name in same}
        kernel = self.used_from or UsedFrom()
        return ClaimRequest(
            workers=WorkerBounds(self.workers.min, self.workers.max),
            name=self.name,
            model=self.model,
            devices=worker_devices(self.gpus_per_worker, _bytes_of(self, "gpu_memory")),
            memory_bytes=_bytes_of(self, "min_gpu_memory"),
            cpu=0 if self.cpus is None else max(1, round(self.cpus * 1000)),
            queue=self.queue,
            priority=self.priority,
            environment=self.environment,
            expected=_seconds(self.expected_s),
            time_limit=_seconds(self.time_limit_s),
            deadline=self.deadline,
            near=self.near,
            on_idle=self.on_idle,
            idle_after=_seconds(self.idle_after_s),
            env=self.env,
            kernel_versions=that_matter(kernel.versions),
            kernel_interpreter=kernel.interpreter,
            options=WorkerOptions(
                memory_limit_bytes=_bytes_of(self, "memory") or None,
                **options,
            ),
        )


class ScaleBody(Body):
    """Other bounds for a claim."""

    workers: Workers


class ReleaseBody(Body):
    """Give a claim back."""

    reason: Words = ""


class HibernateBody(Body):
    """Give a claim's devices back and keep its results."""

    reason: Words = ""


class ResumeBody(Body):
    """Have devices again for a claim that hibernates."""


class LeaseView(View):
    """One worker of a claim and the device or devices it is on."""

    id: LeaseId
    phase: LeasePhase
    host: str
    host_id: HostId
    device: DeviceUuid
    devices: tuple[DeviceUuid, ...] = ()
    """All its devices, the first one among them."""
    share: float = 1
    """How much of its device is its; below 1 others may hold the rest."""
    model: str
    granted_at: datetime
    reason: str
    restarts: int


class WaitView(StartView):
    """Why a claim waits: its place in line from 1, what binds it, and its thought start."""

    place: int
    reason: str
    never: bool = False


class ClaimView(View):
    """A claim, as its owner and admins see it."""

    id: ClaimId
    name: str
    owner: UserName
    phase: Phase
    phase_since: datetime
    reason: str
    workers: Workers
    gpus_per_worker: float = 1
    """0 for a part that is told in bytes, until it is known of which device."""
    gpu_memory: int | None = None
    """Bytes of a device that each worker gets, if a part was asked for so."""
    model: str
    queue: str = ""
    priority: str
    created_at: datetime
    started_at: datetime | None = None
    expires_at: datetime | None = None
    end: EndKind | None = None
    warning: WarningView | None = None
    problem: str = ""
    """What keeps its processes from their work while it runs, with what to do; "" while all do."""
    own_wish: str = ""
    """What the policy makes of its user's `on_idle`, in a sentence; "" if it does just that."""
    kept_until: datetime | None = None
    """Nothing takes it as idle before: its user has said so."""
    keeping: KeepingView | None = None
    """Its results, once it is warned and while it hibernates: what is kept and what cannot be."""
    environment: str = ""
    kernels: tuple[KernelView, ...] = ()
    """The Python processes that use it."""
    wait: WaitView | None = None
    leases: tuple[LeaseView, ...] = ()
    scheduler_host: str | None = None
    scheduler_address: str | None = None
    story: tuple[StoryLine, ...] = ()
    seq: int
    """The pool's last event when this was true: where to resume the event stream."""


class ConnectionView(View):
    """What the claim's owner, and nobody else, needs to reach its scheduler."""

    scheduler_address: str | None
    dashboard_url: str | None = Field(default=None, repr=False)
    """Direct URL with its secret prefix; TLS with the claim's own authority."""
    ca: str = Field(repr=False)
    certificate: str = Field(repr=False)
    key: str = Field(repr=False)


class HolderView(View):
    """Who holds a device or a part of it. `claim` and `owner` are None for a stranger's claim."""

    claim: ClaimId | None = None
    owner: UserName | None = None
    share: float


class DeviceView(View):
    """A device, who has it, and how it is. `claim` and `owner` are None for a stranger's claim."""

    uuid: DeviceUuid
    host: str
    host_id: HostId
    device: Device
    health: Health
    problem: str
    free: bool
    leased: bool
    claim: ClaimId | None = None
    owner: UserName | None = None
    holders: tuple[HolderView, ...] = ()
    """All who hold it; several if they hold parts."""
    left: float = 1
    """How much of it nobody holds."""
    held_elsewhere: bool = False
    foreign: tuple[DeviceProcess, ...] = ()
    utilisation: float | None = None
    memory_used_bytes: int | None = None


class HostView(View):
    """A host of the pool."""

    id: HostId
    name: str
    address: str
    phase: HostPhase
    since: datetime
    cpus: int
    memory_bytes: int
    labels: tuple[str, ...]
    devices: int
    free: int
    problem: str


class EventView(View):
    """One thing that happened."""

    seq: int
    at: datetime
    kind: EventKind
    reason: str
    owner: UserName | None = None
    claim_id: ClaimId | None = None
    lease_id: LeaseId | None = None
    host_id: HostId | None = None
    device: DeviceUuid | None = None
    evidence: EvidenceView | None = None
    """What it rests on, if a rule on idle claims warned of something or took it."""


class StreamGap(View):
    """First line of a stream whose wished start is no longer kept: load the state anew."""

    gap: bool = True
    oldest: int


class Role(StrEnum):
    """What a token is for."""

    USER = "user"
    ADMIN = "admin"
    AGENT = "agent"


class TokenBody(Body):
    """A new token. Only an admin may name another user or another role than user."""

    user: Annotated[str, Field(max_length=200)] = ""
    role: Role = Role.USER
    label: Annotated[str, Field(max_length=200)] = ""
    expires_in_s: Annotated[float, Field(gt=0, le=315_360_000)] | None = None
    os_user: Annotated[str, Field(max_length=200)] | None = None
    """Whose processes that user's claims are from now on: "" is the user of the same name again,
    None leaves it as it is, which at first is the user of the same name."""


class TokenView(View):
    """A token, without its secret."""

    id: str
    user: UserName
    role: Role
    label: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = None


class NewTokenView(TokenView):
    """A token just made: the only time its secret is shown."""

    secret: str = Field(repr=False)


class StatusView(View):
    """The pool in one look, and who is asking."""

    version: str
    user: UserName
    role: Role
    hosts: int
    devices: int
    free: int
    simulated: bool
    """All its devices are simulated."""
    waiting: int
    running: int
    my_claims: int
    coming: tuple[ComingView, ...] = ()
    """The caller's claims that wait and may start, in line; the first few."""
    reservations: tuple[ReservationView, ...] = ()
    """Those that are open, or will be within a day; the first few."""
    warned: tuple[WarnedView, ...] = ()
    """The caller's claims of which something will be taken, the soonest first; the first few."""
    problems: tuple[str, ...] = ()
    """What keeps the caller's claims from their work, a sentence each, the first few; before that,
    for admins, what is wrong with the manager itself."""
    seq: int


class Problem(View):
    """An error, as RFC 9457 has it."""

    type: str
    """"urn:gpupool:problem:" and the error's reference."""
    title: str
    status: int
    detail: str
    hint: str = ""
    field: str = ""
    instance: str = ""


def _bytes_of(body: ClaimBody, name: str) -> int:
    """A size among the terms; 0 if it is left out."""
    text = getattr(body, name)
    return parse_bytes(text, field=name) if text else 0


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)
