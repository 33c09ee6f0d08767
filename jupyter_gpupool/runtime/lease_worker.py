"""distributed's Worker as a lease has it.

Made by `worker`; `holder` builds on it. What its scheduler may ask of it beyond what every Dask
worker does is `taking`, `handing_over` and `surveying`.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import distributed
from distributed.worker_state_machine import GatherDepFailureEvent, StateMachineEvent

from jupyter_gpupool.protocol.keeping import UnkeptReason
from jupyter_gpupool.protocol.launch import WorkerState

from . import handing_over, surveying, taking
from .agent_link import AgentLink
from .unread import read_apart

CLOSE_WITHIN_S = 1.5


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
        self.handlers[taking.OPERATION] = self._take
        self.handlers[handing_over.OPERATION] = self._hand_over
        self.handlers[surveying.OPERATION] = self._survey

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
            timeout=CLOSE_WITHIN_S, executor_wait=False, nanny=False, reason=reason
        )
        return closed

    async def gather_dep(
        self, worker: str, to_gather: Collection[Any], total_nbytes: int, *, stimulus_id: str
    ) -> StateMachineEvent:
        """Fetch what tasks here need; one that cannot be read fails those that need it alone."""
        event: StateMachineEvent = await super().gather_dep(
            worker, to_gather, total_nbytes, stimulus_id=stimulus_id
        )
        if isinstance(event, GatherDepFailureEvent) and not self.end_reason:
            return await read_apart(self, event, to_gather)
        return event

    async def put_away(self, fetched: Mapping[Any, Any]) -> Mapping[Any, tuple[str, str]]:
        """Keep results that its scheduler had it fetch. See `taking`."""
        # What a task here needs is on its way by itself, and must not come from two sides.
        new = {key: result for key, result in fetched.items() if self._is_new(key)}
        self.update_data(new)
        reason = UnkeptReason.NO_ROOM.value
        return {key: (reason, "its worker did not take it") for key in new if key not in self.data}

    def _is_new(self, key: Any) -> bool:
        task = self.state.tasks.get(key)
        return task is None or task.state == "released"

    async def _take(self, source: str, keys: Collection[Any]) -> dict[str, Any]:
        return await taking.take(self, source, keys)

    async def _hand_over(self, path: str, word: bytes, keys: Collection[Any]) -> dict[str, Any]:
        return await handing_over.give(self.data, path, word, keys)

    async def _survey(self, keys: Collection[Any]) -> dict[str, Any]:
        return await surveying.survey(self.data, keys)
