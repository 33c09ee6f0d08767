"""What a forked process is told: from a wanted process to its `Launch`. Pure.

Called by `starting`. A `Launch` holds secrets: it goes to the zygote in a memory file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from jupyter_gpupool.pool.dask_cuda import DaskCudaOptions
from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.errors import BadRequest
from jupyter_gpupool.pool.lease import WHOLE_DEVICE
from jupyter_gpupool.pool.request import WorkerOptions
from jupyter_gpupool.pool.units import absolute_bytes, format_bytes
from jupyter_gpupool.protocol.launch import (
    HolderLaunch,
    Launch,
    Role,
    SchedulerLaunch,
    Tls,
    WorkerLaunch,
)
from jupyter_gpupool.protocol.link import TlsCredentials, WantedHolder

from .state_folder import StateFolder
from .wanted import WantedProcess

_LEAST_MEMORY_BYTES = 512 * 2**20
"""A Python with Dask in it needs that much host memory, however small its part of a device."""
CLAIM_MARK = "GPUPOOL_CLAIM"
LEASE_MARK = "GPUPOOL_LEASE"
"""Set in every process of a claim, so that whatever it starts can be told from others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTerms:
    """What every launch on this host has in common.

    Attributes:
        listen: Address that schedulers and workers listen on.
        memory_share_bytes: Host memory a worker when its claim names none.
    """

    folder: StateFolder
    listen: str
    memory_share_bytes: int


def launch_of(
    wanted: WantedProcess,
    *,
    terms: HostTerms,
    devices: Sequence[Device],
    scheduler_address: str | None,
    temporary: str = "",
) -> Launch:
    """Everything the process needs; `devices` are the worker's, none for a scheduler.

    Raises:
        BadRequest: If its terms do not go with its part of the device, or with such devices.
    """
    key, claim = wanted.key, wanted.claim
    credentials = claim.worker_credentials
    scheduler = None
    if claim.scheduler is not None and key.role is Role.SCHEDULER:
        credentials = claim.scheduler.credentials
        scheduler = SchedulerLaunch(dashboard_prefix=claim.scheduler.dashboard_prefix)
    return Launch(
        role=key.role,
        claim_id=key.claim_id,
        lease_id=key.lease_id or "",
        name=key.lease_id or "",
        listen=terms.listen,
        protocol=claim.options.protocol,
        folder=str(terms.folder.claim(key.claim_id)),
        agent_socket=str(terms.folder.socket),
        temporary=temporary,
        tls=_tls(credentials),
        env={**claim.env, CLAIM_MARK: key.claim_id, LEASE_MARK: key.mark},
        scheduler_address=scheduler_address,
        worker=_worker(devices, wanted, terms) if devices else None,
        scheduler=scheduler,
        holder=_holder(claim.holder) if key.role is Role.HOLDER else None,
    )


def memory_limit_bytes(wanted: WantedProcess, terms: HostTerms) -> int:
    """Host memory that one worker may use: what goes with its devices, or its part of one."""
    told = wanted.claim.options.memory_limit_bytes
    share = terms.memory_share_bytes * wanted.share * len(wanted.devices) // WHOLE_DEVICE
    return told or max(share, min(_LEAST_MEMORY_BYTES, terms.memory_share_bytes))


def part_bytes(device_bytes: int, share: int) -> int:
    """How much memory so many thousandths of a device are."""
    return device_bytes * share // WHOLE_DEVICE


def _holder(wanted: WantedHolder | None) -> HolderLaunch:
    assert wanted is not None, "a holder runs only where one is wanted"
    return HolderLaunch(memory_bytes=wanted.memory_bytes, quota_bytes=wanted.quota_bytes)


def _tls(credentials: TlsCredentials) -> Tls:
    return Tls(ca=credentials.ca, certificate=credentials.certificate, key=credentials.key)


def _worker(devices: Sequence[Device], wanted: WantedProcess, terms: HostTerms) -> WorkerLaunch:
    first, *further = devices
    options, memory_bytes = wanted.claim.options, part_bytes(first.memory_bytes, wanted.share)
    _check_devices(devices)
    if wanted.share < WHOLE_DEVICE:
        _check_part(options, memory_bytes)
    of_dask_cuda = {each.name: getattr(options, each.name) for each in fields(DaskCudaOptions)}
    return WorkerLaunch(
        device=first.uuid,
        further=tuple(device.uuid for device in further),
        simulated=first.simulated,
        device_memory_bytes=memory_bytes,
        is_part=wanted.share < WHOLE_DEVICE,
        memory_limit_bytes=memory_limit_bytes(wanted, terms),
        cpu_affinity=_near(devices),
        **of_dask_cuda,
    )


def _near(devices: Sequence[Device]) -> tuple[int, ...]:
    """CPUs near any of them; none where it is not known of all."""
    known = all(device.cpu_affinity for device in devices)
    return tuple(sorted({c for device in devices for c in device.cpu_affinity})) if known else ()


def _check_devices(devices: Sequence[Device]) -> None:
    if len(devices) > 1 and any(device.parent is not None for device in devices):
        raise BadRequest(
            "CUDA shows a process one MIG instance, never several.",
            field="gpus_per_worker",
            hint="Ask for one device a worker, or name a model that is no MIG instance.",
        )


def _check_part(options: WorkerOptions, memory_bytes: int) -> None:
    for name in ("rmm_pool_size", "rmm_maximum_pool_size"):
        size_bytes = absolute_bytes(getattr(options, name))
        if size_bytes is not None and size_bytes > memory_bytes:
            raise BadRequest(
                f"{name} is {format_bytes(size_bytes)}, and a worker's part of the device is"
                f" {format_bytes(memory_bytes)}.",
                field=name,
                hint="Ask for a larger part, or for a smaller pool.",
            )
