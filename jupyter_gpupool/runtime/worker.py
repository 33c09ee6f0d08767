"""A lease's worker: one real dask-cuda worker on one device, without a Nanny.

Called by `child` in a process that is the claim's user already. The agent takes the Nanny's place:
it watches memory and forks a worker again that ended.
"""

import asyncio
import os

import dask.config

from jupyter_gpupool.protocol.launch import Launch, WorkerLaunch

from .agent_link import AgentLink
from .cuda_parts import cuda_parts
from .lease_worker import LeaseWorker
from .life import live_until_ended
from .problems import CannotStart
from .protocols import check_protocol
from .worker_process import WorkerProcess, shared_options

QUIETER = {
    "distributed.worker.http.routes": [],
    # Measures how late the loop runs; ten times a second tells as much as fifty times.
    "distributed.admin.tick.interval": "100ms",
    # The dashboard's profile samples a task's thread: ten times a second shows what a hundred do,
    # at a tenth of what an idle worker costs.
    "distributed.worker.profile.interval": "100ms",
}


def run(launch: Launch, *, lock_fds: tuple[int, ...]) -> int:
    """Be the lease's worker until it is stopped, removed or left alone.

    Returns:
        The exit code.
    """
    check_protocol(launch.protocol)
    if launch.worker is None:
        raise CannotStart("its launch does not say what a worker has to know.")
    options = launch.worker
    visible = () if options.simulated else (options.device, *options.further)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(visible)
    _configure(options)

    def build(link: AgentLink, scheduler_address: asyncio.Future[str]) -> LeaseWorker:
        return _build(launch, options, link, scheduler_address)

    return live_until_ended(WorkerProcess(launch, build, lock_fds=lock_fds).serve())


def _configure(launch: WorkerLaunch) -> None:
    dask.config.set(QUIETER)
    if launch.simulated:
        dask.config.set({"distributed.diagnostics.nvml": False})
        if launch.cpu_affinity:
            os.sched_setaffinity(0, launch.cpu_affinity)


def _build(
    launch: Launch, options: WorkerLaunch, link: AgentLink, scheduler_address: asyncio.Future[str]
) -> LeaseWorker:
    parts = cuda_parts(options)
    return LeaseWorker(
        scheduler_address=scheduler_address,
        link=link,
        nthreads=options.nthreads,
        memory_limit=options.memory_limit_bytes,
        data=parts.data,
        plugins=parts.plugins,
        preload=parts.preload,
        preload_argv=parts.preload_argv,
        **shared_options(launch),
    )
