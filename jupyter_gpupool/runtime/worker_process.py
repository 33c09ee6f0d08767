"""A worker's life within its process: it starts, keeps its agent told, and ends when it should.

Used by `worker` and `holder`.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from typing import Any

from jupyter_gpupool.protocol.launch import Hello, Launch, WorkerState

from .agent_link import AgentLink
from .credentials import ClaimSecurity
from .endings import STOPPED, UNKNOWN, exit_code_of, sentence_of
from .lease_worker import CLOSE_WITHIN_S, LeaseWorker

_START_WITHIN_S = 120.0
_LAST_WORDS_WITHIN_S = 0.2

Build = Callable[[AgentLink, asyncio.Future[str]], LeaseWorker]
"""Makes the worker, given its agent's ear and its scheduler's address."""


class WorkerProcess:
    """One worker, or one holder, from its first moment to its last."""

    def __init__(self, launch: Launch, build: Build, *, lock_fds: tuple[int, ...] = ()) -> None:
        self._launch = launch
        self._build = build
        self._lock_fds = lock_fds
        self._stop = asyncio.Event()
        self._stop_reason = STOPPED

    async def serve(self) -> int:
        """Be it until it ends.

        Returns:
            The exit code.
        """
        self._scheduler_address = asyncio.get_running_loop().create_future()
        self._learn_address(self._launch.scheduler_address)
        link = self._open_link()
        talking = asyncio.create_task(link.run())
        # Lets the link connect, so that orders travel while the worker is being built.
        await asyncio.sleep(0)
        worker = self._build(link, self._scheduler_address)
        self._obey_signals()
        reason = await self._work(worker, link)
        await link.told(_LAST_WORDS_WITHIN_S)
        talking.cancel()
        print(f"The {self._launch.role} has ended: {sentence_of(reason)}.", flush=True)  # noqa: T201
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
                async with asyncio.timeout(CLOSE_WITHIN_S):
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


def shared_options(launch: Launch) -> dict[str, Any]:
    """Arguments for distributed's Worker that do not depend on what it is."""
    return {
        # Only its form matters: the address is replaced before it is used.
        "scheduler_ip": launch.scheduler_address or f"{launch.protocol}://{launch.listen}:1",
        "name": launch.name,
        "host": launch.listen,
        "protocol": launch.protocol,
        "security": ClaimSecurity(launch.tls),
        "local_directory": launch.folder,
        "death_timeout": _START_WITHIN_S,
        "lifetime": None,
    }
