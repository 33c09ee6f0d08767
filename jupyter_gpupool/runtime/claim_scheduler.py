"""distributed's Scheduler as a claim has it: without HTTP, and with a holder that is no worker.

Made by `scheduler`. Clients count and run things on workers; the holder is none to them.
"""

import asyncio
import functools
import inspect
import itertools
import time
from collections.abc import Callable, Collection
from typing import Any

import distributed
from distributed.core import Status
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.scheduler import WorkerStatusPlugin

from jupyter_gpupool.protocol.keeping import HOLDER_NAME

from .unread import OPERATION, fail_dependents

_GATHERED_S = 0.002
"""For so long distributed gathers what it tells a client."""
_USERS_CODE = frozenset({"run", "run_coroutine", "actor_execute"})
_ASKED_OF_STREAM = ("update-graph", "cancel-keys")
_ASKED = (
    "scatter",
    "gather",
    "retry",
    "broadcast",
    "proxy",
    "run_function",
    "restart",
    "replicate",
)
"""What a client says only because its user, or their code, wants something."""


class ClaimScheduler(distributed.Scheduler):
    """distributed's Scheduler.

    Attributes:
        before_removal: Called with each worker's state before it is gone.
        status_changed: Called when a worker has begun or ceased to take tasks.
        runs: Functions of `client.run` and calls of actors' methods under way.
        runs_begun: These, so far.
        asked_s: Monotonic; when a client last asked for anything. None if none ever did.
    """

    def __init__(self, **options: Any) -> None:
        self.before_removal: Callable[[Any], None] = lambda _: None
        self.status_changed: Callable[[], None] = lambda: None
        self.runs = 0
        self.runs_begun = 0
        self.asked_s: float | None = None
        self._observers = itertools.count()
        super().__init__(**options)
        self.stream_handlers[OPERATION] = self._take_unread
        for name in _ASKED_OF_STREAM:
            self.stream_handlers[name] = self._noting(self.stream_handlers[name])
        for name in _ASKED:
            self.handlers[name] = self._noting(self.handlers[name])

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Open nothing: it would listen to everybody. `dashboard` does, behind TLS and a prefix."""

    def add_plugin(self, plugin: SchedulerPlugin, **options: Any) -> None:
        """Add a plugin; one that tells a client's cluster of workers gets a name of its own.

        distributed gives all of these the same: of two notebooks at one claim the first would hear
        of no worker any more.
        """
        if isinstance(plugin, WorkerStatusPlugin):
            plugin.name = f"{plugin.name}-{next(self._observers)}"  # type: ignore[misc]
        super().add_plugin(plugin, **options)

    @property
    def holder(self) -> Any:
        """The state of the registered holder, or None."""
        address = self.aliases.get(HOLDER_NAME)
        return None if address is None else self.workers.get(address)

    @property
    def real_workers(self) -> list[Any]:
        """The states of all workers but the holder."""
        return [state for state in self.workers.values() if state.name != HOLDER_NAME]

    def identity(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """What clients see of the cluster."""
        seen: dict[str, Any] = super().identity(*arguments, **options)
        if (holder := self.holder) is not None:
            seen["workers"].pop(holder.address, None)
            seen["n_workers"] -= 1
            seen["total_threads"] -= holder.nthreads
        return seen

    async def broadcast(
        self, *, msg: dict[str, Any], workers: Collection[str] | None = None, **options: Any
    ) -> dict[str, Any]:
        """Send a message to workers; to all of them if none are named."""
        if workers is None and options.get("hosts") is None:
            workers = [state.address for state in self.real_workers]
        is_run = msg.get("op") in _USERS_CODE
        self.runs += is_run
        self.runs_begun += is_run
        try:
            answers: dict[str, Any] = await super().broadcast(msg=msg, workers=workers, **options)
        finally:
            self.runs -= is_run
        return answers

    async def restart(self, **options: Any) -> None:
        """Forget all tasks, have workers start anew, and answer once every client was told.

        A client forgets its results when it is told. Where there is no worker to wait for, the
        answer would come first, and what is asked of the claim right after it be forgotten, too.
        """
        await super().restart(**options)
        while self._has_news_for_clients():  # noqa: ASYNC110 - a stream tells nobody when it is sent
            await asyncio.sleep(_GATHERED_S)

    def _has_news_for_clients(self) -> bool:
        streams: Collection[Any] = self.client_comms.values()
        return any(stream.buffer and not stream.closed() for stream in streams)

    async def restart_workers(self, workers: Collection[str] | None = None, **options: Any) -> Any:
        """Have workers start anew; the holder, whose results were released before, stays."""
        if workers is None:
            workers = [state.address for state in self.real_workers]
        return await super().restart_workers(list(workers), **options)

    def handle_worker_status_change(
        self, status: str | Status, worker: Any, stimulus_id: str
    ) -> None:
        """A worker is running, paused or on its way out."""
        super().handle_worker_status_change(status, worker, stimulus_id)
        self.status_changed()

    def _take_unread(self, key: Any, worker: str, error: dict[str, Any]) -> None:
        fail_dependents(self, key, worker, error)

    def _noting(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """The same, but that it is noted when it was asked for."""

        @functools.wraps(handler)
        def asked(*arguments: Any, **options: Any) -> Any:
            self.asked_s = time.monotonic()
            return handler(*arguments, **options)

        @functools.wraps(handler)
        async def asked_for_long(*arguments: Any, **options: Any) -> Any:
            self.asked_s = time.monotonic()
            return await handler(*arguments, **options)

        # distributed looks at the function to know which kind it is.
        return asked_for_long if inspect.iscoroutinefunction(handler) else asked

    async def remove_worker(self, address: str, **options: Any) -> Any:
        """Forget a worker, and what only it has."""
        if (state := self.workers.get(self.coerce_address(address))) is not None:
            self.before_removal(state)
        return await super().remove_worker(address, **options)
