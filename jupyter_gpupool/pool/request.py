"""What a user asks for: the terms of a claim, checked when they are built.

Built by the API from its body and read by scheduling; a request that exists makes sense.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from .dask_cuda import DaskCudaOptions
from .errors import BadRequest
from .units import absolute_bytes, format_bytes, parse_bytes
from .worker_devices import ONE_DEVICE, WorkerDevices

MAX_WORKERS = 100_000
_MOST_CPU = 4_096_000
_LIMIT_WORDS = ("default", "auto", "0")
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\]{1,80}")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_text(value: object, field_name: str) -> None:
    """Refuse a term with text, however deep within it, that no file, database or process can take.

    Raises:
        BadRequest: If a text holds half a character or a zero byte; it is not repeated.
    """
    if isinstance(value, str):
        if "\x00" in value or not _is_whole(value):
            raise BadRequest(
                f"{field_name or 'A term'} holds a zero byte or what is no character.",
                field=field_name,
                hint="Send text that UTF-8 can hold; leave bytes of another encoding out.",
            )
    elif isinstance(value, Mapping):
        check_text([*value.keys(), *value.values()], field_name)
    elif isinstance(value, (list, tuple)):
        for part in value:
            check_text(part, field_name)


def _is_whole(text: str) -> bool:
    # JSON may escape half of a surrogate pair, and Python reads foreign bytes of its own
    # environment so.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Priority(StrEnum):
    """How urgent a claim is, as every pool has it; policies may define more such classes."""

    INTERACTIVE = "interactive"
    NORMAL = "normal"
    BATCH = "batch"


class OnIdle(StrEnum):
    """What its user would have done with a claim that is idle."""

    SHRINK = "shrink"
    HIBERNATE = "hibernate"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class WorkerBounds:
    """How many workers a claim wants: starts with `minimum` together, grows to `maximum`.

    Raises:
        BadRequest: If 0 ≤ minimum ≤ maximum does not hold.
    """

    minimum: int
    maximum: int

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.maximum <= MAX_WORKERS:
            is_one = self.minimum == self.maximum
            asked = f"{self.minimum}" if is_one else f"{self.minimum} to {self.maximum}"
            raise BadRequest(
                f"{asked} workers make no sense.",
                field="workers",
                hint=f"Ask for a number from 0 to {MAX_WORKERS}, the smaller bound first.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions(DaskCudaOptions):
    """How each worker of a claim is started.

    Attributes:
        memory_limit_bytes: Host memory a worker; None is the host's share per device.
        protocol: "tls" or, where distributed-ucxx is installed, "ucxx".
    """

    memory_limit_bytes: int | None = None
    protocol: str = "tls"

    def __post_init__(self) -> None:
        if not 1 <= self.nthreads <= 1024:  # noqa: PLR2004 - more than any host has
            raise BadRequest(
                f"{self.nthreads} threads a worker make no sense.",
                field="nthreads",
                hint="Ask for 1 to 1024.",
            )
        if self.memory_limit_bytes is not None and self.memory_limit_bytes < 64 * 2**20:
            raise BadRequest(
                "A worker cannot live in less than 64 MiB of host memory.",
                field="memory",
                hint='Ask for at least "64MiB".',
            )
        if self.protocol not in ("tls", "ucxx"):
            raise BadRequest(
                f"{self.protocol!r} is no protocol of this pool.",
                field="protocol",
                hint='Use "tls" or "ucxx".',
            )
        if self.rmm_async and self.rmm_managed_memory:
            raise BadRequest(
                "rmm_async and rmm_managed_memory exclude each other.",
                field="rmm_async",
                hint="Choose one.",
            )
        if self.rmm_release_threshold is not None and not self.rmm_async:
            raise BadRequest(
                "rmm_release_threshold works only with rmm_async.",
                field="rmm_release_threshold",
                hint="Set rmm_async too.",
            )
        self._check_device_sizes()
        self._check_modules()

    def _check_device_sizes(self) -> None:
        if self.device_memory_limit not in _LIMIT_WORDS:
            _check_device_size(self.device_memory_limit, "device_memory_limit")
        for name in ("rmm_pool_size", "rmm_maximum_pool_size", "rmm_release_threshold"):
            size = getattr(self, name)
            if size is not None:
                _check_device_size(size, name)

    def _check_modules(self) -> None:
        for name in ("pre_import", "rmm_allocator_external_lib_list"):
            for module in getattr(self, name):
                if not _MODULE.fullmatch(module):
                    raise BadRequest(
                        f"{module[:80]!r} is no name of a Python module.",
                        field=name,
                        hint='Write for example "cupy".',
                    )


def _check_device_size(size: str, field_name: str) -> None:
    # A fraction of the device, or bytes. Refused here, it costs a sentence; refused by dask-cuda,
    # it costs three starts.
    try:
        fraction = float(size)
    except ValueError:
        parse_bytes(size, field=field_name)
        return
    if not 0 < fraction <= 2**60:
        raise BadRequest(
            f"{size!r} is neither a fraction of a device nor a size.",
            field=field_name,
            hint='Write for example "0.8" or "10GiB".',
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """The terms of a claim.

    Attributes:
        devices: What each worker gets of devices.
        model: Substring of the device's model, any case; "" is any.
        memory_bytes: Least memory that a device has in all; 0 is any.
        cpu: Thousandths of a core of the host that each worker is counted for; 0 is none.
        expected: How long it will be used; advisory.
        time_limit: When it ends by itself; enforced. None is the pool's longest life.
        on_idle: What becomes of it when it is idle; None leaves it to the policy.
        idle_after: After how long, as far as the policy allows; None leaves it to that.
        env: Variables set in its workers. Secret: never logged, stored encrypted.
        kernel_versions: Of "python" and of packages of the kernel that asks, by name; those it
            does not name are unknown.
        kernel_interpreter: Path of that kernel's Python; "" if unknown.

    Raises:
        BadRequest: If a term makes no sense; `field` names it.
    """

    workers: WorkerBounds
    devices: WorkerDevices = ONE_DEVICE
    name: str = ""
    model: str = ""
    memory_bytes: int = 0
    cpu: int = 0
    queue: str = ""
    priority: str = Priority.INTERACTIVE
    environment: str = ""
    expected: timedelta | None = None
    time_limit: timedelta | None = None
    deadline: datetime | None = None
    near: str = ""
    on_idle: OnIdle | None = None
    idle_after: timedelta | None = None
    options: WorkerOptions = field(default_factory=WorkerOptions)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    kernel_versions: tuple[tuple[str, str], ...] = ()
    kernel_interpreter: str = ""

    def __post_init__(self) -> None:
        for field_name in ("name", "model", "queue", "priority", "environment", "near"):
            check_text(getattr(self, field_name), field_name)
        self._check_name()
        self._check_env()
        self._check_part()
        if not 0 <= self.memory_bytes <= 2**60:
            raise BadRequest(
                f"{self.memory_bytes} bytes of device memory make no sense.",
                field="min_gpu_memory",
                hint='Ask for example "40GiB".',
            )
        if not 0 <= self.cpu <= _MOST_CPU:
            raise BadRequest(
                f"{self.cpu / 1000:g} cores a worker make no sense.",
                field="cpus",
                hint="Ask for example for 4.",
            )
        for field_name in ("expected", "time_limit", "idle_after"):
            duration = getattr(self, field_name)
            if duration is not None and duration <= timedelta(0):
                raise BadRequest(
                    f"{field_name} must be above zero.", field=field_name, hint='Try "2h".'
                )
        if self.deadline is not None and self.deadline.tzinfo is None:
            raise BadRequest(
                "The deadline has no time zone.", field="deadline", hint="Give one, or UTC."
            )

    def _check_part(self) -> None:
        """A size that can be no part of a worker's part; what depends on the device comes later."""
        part_bytes = self.devices.memory_bytes
        for name in ("rmm_pool_size", "rmm_maximum_pool_size"):
            size_bytes = absolute_bytes(getattr(self.options, name))
            if part_bytes and size_bytes is not None and size_bytes > part_bytes:
                raise BadRequest(
                    f"{name} is larger than the {format_bytes(part_bytes)} that a worker gets.",
                    field=name,
                    hint="Ask for more gpu_memory, or for a smaller pool.",
                )

    def _check_name(self) -> None:
        if self.name and not _NAME.fullmatch(self.name):
            raise BadRequest(
                f"{self.name[:80]!r} cannot be a claim's name.",
                field="name",
                hint="Use up to 80 characters, no slash and no control character.",
            )

    def _check_env(self) -> None:
        for key, value in self.env.items():
            if not _ENV_NAME.fullmatch(key):
                raise BadRequest(
                    f"{key[:80]!r} cannot be the name of an environment variable.",
                    field="env",
                    hint="Use letters, digits and underscores.",
                )
            _check_value(key, value)


def _check_value(name: str, value: str) -> None:
    try:
        check_text(value, "env")
    except BadRequest as error:
        # Which variable it is helps; what it holds is secret.
        raise BadRequest(
            f"The value of {name[:80]} holds a zero byte or what is no character.",
            field="env",
            hint=error.hint,
        ) from None
