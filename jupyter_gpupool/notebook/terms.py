"""From the words of `gpupool.claim(…)` to the body the manager reads. Pure; called by `claim`.

What only the manager can judge is left to it; refused here is what could not even be written down.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, TypedDict

from jupyter_gpupool.client.bodies import make
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.request import WorkerBounds
from jupyter_gpupool.pool.units import as_count, parse_bytes, parse_duration
from jupyter_gpupool.pool.worker_devices import ONE_DEVICE, worker_devices
from jupyter_gpupool.protocol.api import ClaimBody, Workers
from jupyter_gpupool.protocol.using import UsedFrom

Gpus = int | float | tuple[int, int]
"""A number of devices, a part of one, or the least to start with and the most to grow to."""
Duration = str | float | timedelta


class WorkerTerms(TypedDict, total=False):
    """What dask-cuda is told for each worker; left out is dask-cuda's own default.

    Sizes are text such as "10GiB" or bytes; their meaning is that of `dask cuda worker`.
    """

    device_memory_limit: str | int
    rmm_pool_size: str | int
    rmm_maximum_pool_size: str | int
    rmm_managed_memory: bool
    rmm_async: bool
    rmm_release_threshold: str | int
    rmm_track_allocations: bool
    rmm_allocator_external_lib_list: Sequence[str]
    enable_cudf_spill: bool
    cudf_spill_stats: int
    pre_import: str | Sequence[str]
    protocol: str


class ClaimTerms(WorkerTerms, total=False):
    """All terms besides the number of devices; left out is the pool's default."""

    name: str
    gpus_per_worker: float
    cpus: float
    model: str
    gpu_memory: str | int
    min_gpu_memory: str | int
    memory: str | int
    nthreads: int
    time_limit: Duration
    expected: Duration
    deadline: datetime
    queue: str
    priority: str
    near: str
    on_idle: str
    idle_after: Duration
    environment: str
    env: dict[str, str]


def body_of(gpus: Gpus, terms: ClaimTerms, used_from: UsedFrom | None = None) -> ClaimBody:
    """The request's body.

    Args:
        gpus: How many devices; with `gpu_memory` how many parts of one.
        terms: The other terms.
        used_from: The Python that will use the claim.

    Raises:
        BadRequest: If a term is unknown or of the wrong kind; `field` names it.
    """
    _check_names(terms)
    values: dict[str, Any] = {
        name: _written(name, value) for name, value in terms.items() if value is not None
    }
    if isinstance(gpus, float) and 0 < gpus < 1 and "gpus_per_worker" not in values:
        values["gpus_per_worker"], gpus = gpus, 1
        bounds = bounds_of(gpus)
    else:
        bounds = workers_on(gpus, values.get("gpus_per_worker", 1))
    for name in ("time_limit", "expected", "idle_after"):
        if name in values:
            values[f"{name}_s"] = parse_duration(values.pop(name), field=name).total_seconds()
    body = make(
        ClaimBody,
        workers=make(Workers, min=bounds.minimum, max=bounds.maximum),
        used_from=used_from,
        **values,
    )
    # The manager checks the same; here the answer comes before anything is started.
    body.to_request()
    return body


def bounds_of(gpus: Gpus) -> WorkerBounds:
    """How many workers "2" or "1 to 4" devices are: one worker a device.

    Raises:
        BadRequest: If it is neither.
    """
    pair = gpus if isinstance(gpus, tuple | list) else (gpus, gpus)
    counts = [whole for count in pair if (whole := as_count(count)) is not None]
    if len(pair) != 2 or len(counts) != 2:  # noqa: PLR2004 - a pair
        raise BadRequest(
            f"gpus={gpus!r} is no number of devices.",
            field="gpus",
            hint="Write gpus=2, gpus=(1, 4) for one to four, or gpus=0.5 for a part of one.",
        )
    return WorkerBounds(*counts)


def workers_on(gpus: Gpus, per_worker: float) -> WorkerBounds:
    """How many workers so many devices are if each worker has that many, or that part of one.

    Raises:
        BadRequest: If either is no such number, or they do not go together.
    """
    part = _number(per_worker)
    if part is None:
        raise BadRequest(
            f"gpus_per_worker={per_worker!r} is no number of devices.",
            field="gpus_per_worker",
            hint="Write gpus_per_worker=2, or gpus_per_worker=0.5 for a part of one.",
        )
    if worker_devices(part) == ONE_DEVICE:
        return bounds_of(gpus)
    pair = gpus if isinstance(gpus, tuple | list) else (gpus, gpus)
    counts = [count / part for each in pair if (count := _number(each)) is not None]
    if len(pair) != 2 or [round(count, 6) % 1 for count in counts] != [0, 0]:  # noqa: PLR2004 - a pair
        raise BadRequest(
            f"gpus={gpus!r} is no number of workers that have {part:g} each.",
            field="gpus",
            hint=f"Ask for gpus={part:g}, {2 * part:g} and so on.",
        )
    return WorkerBounds(*map(round, counts))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, float) else as_count(value)


def _written(name: str, value: object) -> object:
    whole = as_count(value)
    value = value if whole is None else whole
    if name == "pre_import":
        names = value.split(",") if isinstance(value, str) else value
        return tuple(names) if isinstance(names, Sequence) else names
    if name in ("gpu_memory", "min_gpu_memory", "memory") and value != "":
        return str(parse_bytes(value, field=name) if isinstance(value, int) else value)
    is_size = name.startswith("rmm_") or name == "device_memory_limit"
    if is_size and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return tuple(value) if isinstance(value, list) else value


def _check_names(names: Collection[str]) -> None:
    unknown = sorted(set(names) - ClaimTerms.__annotations__.keys())
    if unknown:
        known = sorted(ClaimTerms.__annotations__)
        near = get_close_matches(unknown[0], ["gpus", *known], 1)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise BadRequest(
            f"A claim has no term {unknown[0]!r}.",
            field=unknown[0],
            hint=f"{meant}Its terms are: {', '.join(known)}.",
        )
