"""What schedulers and workers say on the agent's socket, and whether they are who they say.

Made by `host.HostAgent`. Any process of the claim's user could speak in a worker's name, so only
the very process that was forked for it is heard.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from jupyter_gpupool.pool.errors import PoolError
from jupyter_gpupool.pool.ids import ClaimId, HostId
from jupyter_gpupool.protocol.activity import Activity
from jupyter_gpupool.protocol.launch import Hello, Role, SchedulerState, WorkerState

from . import procfs
from .child_socket import ChildSocket
from .devices.lock import DeviceLocks
from .footprint import HOST_MARK
from .keys import ProcessKey
from .seen import Seen, Stage, scheduler_said, worker_named_by_scheduler, worker_said
from .table import Table

logger = logging.getLogger(__name__)


class Children:
    """Takes what children say into the table.

    Args:
        keep_record: Told of what has changed.
        lively: Told what goes on in a claim's scheduler, each second. One that is silent is
            unknown, and never idle.
    """

    def __init__(
        self,
        host_id: HostId,
        table: Table,
        locks: DeviceLocks,
        keep_record: Callable[[Seen], None],
        lively: Callable[[ClaimId, Activity], None] = lambda _, __: None,
    ) -> None:
        self._host_id = host_id
        self._table = table
        self._locks = locks
        self._keep_record = keep_record
        self._lively = lively
        self._missed: set[ProcessKey] = set()
        self._heard = asyncio.Event()

    def open_socket(self, path: Path) -> ChildSocket:
        """The socket they speak on, not yet started."""
        return ChildSocket(
            path,
            admit=self.admit,
            heard=self.hear,
            locks_returned=self.take_locks_back,
            lively=self.hear_lively,
        )

    async def wait_for_all(self, within_s: float) -> None:
        """Give those that were adopted time to speak, so that the first report knows them well."""
        deadline_s = time.monotonic() + within_s
        self._missed = {key for key, seen in self._table.items() if seen.stage is Stage.ALIVE}
        while self._are_missed() and (left_s := deadline_s - time.monotonic()) > 0:
            self._heard.clear()
            try:
                async with asyncio.timeout(left_s):
                    await self._heard.wait()
            except TimeoutError:
                return

    def admit(self, hello: Hello, pid: int, uid: int) -> bool:
        """Whether this process is the one it says it is."""
        seen = self._table.named(hello)
        if seen is None or seen.uid not in (uid, None):
            return False
        if seen.stage is not Stage.FORKING:
            return seen.process is not None and seen.process.pid == pid
        # Its pid is not known here yet: it may be quicker than the zygote's answer.
        row = procfs.read_row(pid)
        marked = procfs.environment_of(pid).get(HOST_MARK) == self._host_id
        return marked and row is not None and row.session == pid

    def hear(self, hello: Hello, state: SchedulerState | WorkerState) -> None:
        """Take in what a child says of itself, and a scheduler of its workers."""
        seen = self._table.named(hello)
        if seen is None:
            return
        if isinstance(state, WorkerState):
            self._learn(worker_said(seen, state))
        else:
            self._learn(scheduler_said(seen, state))
            for worker in self._workers_of(seen.key):
                self._learn(worker_named_by_scheduler(worker, state))
        self._missed.discard(seen.key)
        self._heard.set()

    def hear_lively(self, hello: Hello, activity: Activity) -> None:
        """Pass on what goes on in a scheduler that is not being ended."""
        seen = self._table.named(hello)
        if seen is not None and seen.stage is Stage.ALIVE:
            self._lively(seen.key.claim_id, activity)

    def take_locks_back(self, hello: Hello, descriptors: Sequence[int]) -> None:
        """Hold devices' locks again that only their worker held since the last agent died."""
        seen = self._table.named(hello)
        devices = () if seen is None else seen.devices
        for device, descriptor in zip(devices, descriptors, strict=False):
            try:
                self._locks.adopt(device, descriptor)
            except PoolError as error:
                logger.warning("%s returned no lock of its device: %s", hello.lease_id, error)
        for descriptor in descriptors[len(devices) :]:
            os.close(descriptor)

    def _learn(self, seen: Seen) -> None:
        if self._table[seen.key] != seen:
            self._table.put(seen)
            self._keep_record(seen)

    def _workers_of(self, scheduler: ProcessKey) -> Iterable[Seen]:
        rows = self._table.of_claim(scheduler.claim_id)
        return (r for r in rows if r.key.role is Role.WORKER and r.key.scheduler == scheduler)

    def _are_missed(self) -> bool:
        alive = {key for key, seen in self._table.items() if seen.stage is Stage.ALIVE}
        self._missed &= alive
        return bool(self._missed)
