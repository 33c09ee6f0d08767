"""What a forked process is told: from a wanted process to its `Launch`. Pure.

Called by `starting`. A `Launch` holds secrets: it goes to the zygote in a memory file.
"""

from dataclasses import dataclass, fields

from jupyter_gpupool.pool.dask_cuda import DaskCudaOptions
from jupyter_gpupool.pool.device import Device
from jupyter_gpupool.pool.request import WorkerOptions
from jupyter_gpupool.protocol.launch import Launch, SchedulerLaunch, Tls, WorkerLaunch
from jupyter_gpupool.protocol.link import TlsCredentials

from .state_folder import StateFolder
from .wanted import WantedProcess

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
    device: Device | None,
    scheduler_address: str | None,
) -> Launch:
    """Everything the process needs; `device` is the worker's, None for a scheduler."""
    key, claim = wanted.key, wanted.claim
    credentials = claim.worker_credentials
    scheduler = None
    if claim.scheduler is not None and key.lease_id is None:
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
        tls=_tls(credentials),
        env={**claim.env, CLAIM_MARK: key.claim_id, LEASE_MARK: key.mark},
        scheduler_address=scheduler_address,
        worker=_worker(device, claim.options, terms) if device is not None else None,
        scheduler=scheduler,
    )


def memory_limit_bytes(options: WorkerOptions, terms: HostTerms) -> int:
    """Host memory that one worker may use."""
    return options.memory_limit_bytes or terms.memory_share_bytes


def _tls(credentials: TlsCredentials) -> Tls:
    return Tls(ca=credentials.ca, certificate=credentials.certificate, key=credentials.key)


def _worker(device: Device, options: WorkerOptions, terms: HostTerms) -> WorkerLaunch:
    of_dask_cuda = {each.name: getattr(options, each.name) for each in fields(DaskCudaOptions)}
    return WorkerLaunch(
        device=device.uuid,
        simulated=device.simulated,
        device_memory_bytes=device.memory_bytes,
        memory_limit_bytes=memory_limit_bytes(options, terms),
        cpu_affinity=device.cpu_affinity,
        **of_dask_cuda,
    )
