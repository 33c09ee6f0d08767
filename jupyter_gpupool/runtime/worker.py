"""A lease's worker: one real dask-cuda worker on one device, without a Nanny.

Called by `child` in a process that is the claim's user already. The agent takes the Nanny's place:
it watches memory and forks a worker again that ended.
"""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import dask.config
import distributed

from jupyter_gpupool.protocol.launch import Hello, Launch, WorkerLaunch, WorkerState

from .agent_link import AgentLink
from .credentials import ClaimSecurity
from .cuda_parts import cuda_parts
from .endings import STOPPED, UNKNOWN, exit_code_of, sentence_of
from .life import live_until_ended
from .problems import CannotStart
from .protocols import check_protocol

_START_WITHIN_S = 120.0
_CLOSE_WITHIN_S = 1.5
_LAST_WORDS_WITHIN_S = 0.2
_QUIETER = {
    "distributed.worker.http.routes": [],
    # Measures how late the loop runs; ten times a second tells as much as fifty times.
    "distributed.admin.tick.interval": "100ms",
    # The dashboard's profile samples a task's thread: ten times a second shows what a hundred do,
    # at a tenth of what an idle worker costs.
    "distributed.worker.profile.interval": "100ms",
}


class LeaseWorker(distributed.Worker):
    """distributed's Worker: opens no HTTP server, and may not know its scheduler at first.

    Everything slow in starting (its device's context, plugins) is done before the address of its
    scheduler is waited for.
    """

    def __init__(
        self, *, scheduler_address: asyncio.Future[str], link: AgentLink, **options: Any
    ) -> None:
        self.end_reason = ""
        self._scheduler_address = scheduler_address
        self._link = link
        super().__init__(**options)

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Open nothing: it would listen to everybody."""

    async def _register_with_scheduler(self) -> None:
        address = await self._scheduler_address
        self.scheduler = self.rpc(address)
        self.execution_state["scheduler"] = address
        await super()._register_with_scheduler()

    async def close(  # type: ignore[override]  # distributed's own Worker does the same
        self, *_: Any, reason: str = "worker-close", **__: Any
    ) -> str | None:
        """Close within seconds, whatever its tasks do; the agent hears the reason first."""
        if not self.end_reason:
            self.end_reason = reason
            self._link.tell(WorkerState(registered=False, closing=reason))
        # A thread in a user's task cannot be stopped: the process ends without waiting for it.
        closed: str | None = await super().close(
            timeout=_CLOSE_WITHIN_S, executor_wait=False, nanny=False, reason=reason
        )
        return closed


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
    return live_until_ended(_Process(launch, options, lock_fds).serve())


def _configure(launch: WorkerLaunch) -> None:
    dask.config.set(_QUIETER)
    if launch.simulated:
        dask.config.set({"distributed.diagnostics.nvml": False})
        if launch.cpu_affinity:
            os.sched_setaffinity(0, launch.cpu_affinity)


class _Process:
    def __init__(self, launch: Launch, worker: WorkerLaunch, lock_fds: tuple[int, ...]) -> None:
        self._launch = launch
        self._options = worker
        self._lock_fds = lock_fds
        self._stop = asyncio.Event()
        self._stop_reason = STOPPED

    async def serve(self) -> int:
        self._scheduler_address = asyncio.get_running_loop().create_future()
        self._learn_address(self._launch.scheduler_address)
        link = self._open_link()
        talking = asyncio.create_task(link.run())
        # Lets the link connect, so that orders travel while the worker is being built.
        await asyncio.sleep(0)
        worker = self._build(link)
        self._obey_signals()
        reason = await self._work(worker, link)
        await link.told(_LAST_WORDS_WITHIN_S)
        talking.cancel()
        print(f"The worker has ended: {sentence_of(reason)}.", flush=True)  # noqa: T201
        return exit_code_of(reason)

    def _open_link(self) -> AgentLink:
        launch = self._launch
        link = AgentLink(
            launch.agent_socket,
            Hello(role=launch.role, claim_id=launch.claim_id, lease_id=launch.lease_id),
            obey=lambda orders: self._learn_address(orders.scheduler_address),
            refused=self._give_up,
            lock_fds=self._lock_fds,
        )
        link.tell(WorkerState(registered=False))
        return link

    def _build(self, link: AgentLink) -> LeaseWorker:
        launch, options = self._launch, self._options
        parts = cuda_parts(options)
        return LeaseWorker(
            scheduler_address=self._scheduler_address,
            link=link,
            # Only its form matters: the address is replaced before it is used.
            scheduler_ip=launch.scheduler_address or f"{launch.protocol}://{launch.listen}:1",
            name=launch.name,
            host=launch.listen,
            protocol=launch.protocol,
            security=ClaimSecurity(launch.tls),
            nthreads=options.nthreads,
            memory_limit=options.memory_limit_bytes,
            data=parts.data,
            plugins=parts.plugins,
            preload=parts.preload,
            preload_argv=parts.preload_argv,
            local_directory=str(Path(launch.folder)),
            death_timeout=_START_WITHIN_S,
            lifetime=None,
        )

    async def _work(self, worker: Any, link: AgentLink) -> str:
        """From start to end; the reason of the end. `Any`, for distributed's `start` is untyped."""
        stop = asyncio.create_task(self._stop.wait())
        start = asyncio.ensure_future(worker.start())
        await asyncio.wait([stop, start], return_when=asyncio.FIRST_COMPLETED)
        if start.done():
            await start
            link.tell(WorkerState(registered=True))
            finished = asyncio.create_task(worker.finished())
            await asyncio.wait([stop, finished], return_when=asyncio.FIRST_COMPLETED)
        if not worker.end_reason:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_WITHIN_S):
                    await worker.close(reason=self._stop_reason)
        reason: str = worker.end_reason
        return reason

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)

    def _learn_address(self, address: str | None) -> None:
        if address and not self._scheduler_address.done():
            self._scheduler_address.set_result(address)

    def _give_up(self) -> None:
        self._stop_reason = UNKNOWN
        self._stop.set()
