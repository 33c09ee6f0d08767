"""Does what `reconcile` says has to be done: starts, stops, gives up, tells.

Called by `host.HostAgent`. The table changes at once, so that a report never shows less than what
is under way; the work itself follows in a task. Tasks about one process run one after another,
those about different ones together.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace

from jupyter_gpupool.pool.errors import PoolError, Unavailable

from .devices.lock import DeviceHeldElsewhere
from .endings import Circumstances, after_failed_start, after_own_end
from .keys import ProcessKey
from .log_ends import last_lines
from .parts import Parts
from .process_watch import Ended
from .reconcile import Action, GiveUp, MarkRetired, Start, Stop, Tell
from .seen import GOING, Seen, Stage, failed, forked, forking
from .starting import fork, prepare
from .wanted import Wanted, WantedProcess

logger = logging.getLogger(__name__)

GRACE_S = 3.0
GRACE_AT_THE_END_S = 0.5
"""A claim that ends has nothing to hand over."""


class CarryOut:
    """The hands of one host's agent."""

    def __init__(self, parts: Parts, wanted: Callable[[], Wanted | None]) -> None:
        self._parts = parts
        self._wanted = wanted
        self._work: dict[ProcessKey, asyncio.Task[None]] = {}

    def carry_out(self, actions: Sequence[Action]) -> None:
        """Begin each action, in order."""
        for action in actions:
            logger.info("%s %s", type(action).__name__, action.key)
            match action:
                case Stop(key=key, ends_claim=ends_claim):
                    self._begin_stop(key, GRACE_AT_THE_END_S if ends_claim else GRACE_S)
                case GiveUp(key=key, reason=reason):
                    self._begin_giving_up(key, reason)
                case MarkRetired(key=key):
                    self._mark_retired(key)
                case Start(key=key, wanted=wanted):
                    self._begin_start(key, wanted)
                case Tell(key=key, orders=orders):
                    self._parts.table.put(replace(self._parts.table[key], orders=orders))
                    self._parts.socket.order(key.role, key.claim_id, key.lease_id or "", orders)

    def ended(self, ended: Ended) -> None:
        """A process has ended: by itself, unless it is being stopped."""
        seen = self._parts.table.get(ended.key)
        if seen is not None and seen.stage is Stage.ALIVE and seen.process == ended.process:
            self._after(ended.key, self._settle_own_end(ended))

    async def finish(self) -> None:
        """Wait until all that was begun is done."""
        while tasks := [task for task in self._work.values() if not task.done()]:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """Drop what is under way; the next agent goes on from the records."""
        tasks = [task for task in self._work.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._parts.keeper.write_due()

    def resume(self, seen: Seen) -> None:
        """Go on with a process that a dead agent left."""
        if seen.stage is Stage.ALIVE:
            for device in seen.devices:
                self._parts.locks.expect_back(device)
        else:
            self._hold_devices(seen)
        if seen.stage is Stage.STOPPING:
            self._after(seen.key, self._stop(seen.key, 0))
        elif seen.stage is Stage.ALIVE:
            assert seen.process is not None, "only what has a process is adopted as alive"
            self._parts.processes.watch(seen.key, seen.process, has_parent=False)

    def look_after(self) -> None:
        """Go on where a fault of ours, or a host without a descriptor left, has ended the work."""
        for key, seen in self._parts.table.items():
            if key in self._work:
                continue
            if seen.stage is Stage.STOPPING:
                self._after(key, self._stop(key, 0))
            elif seen.stage is Stage.FORKING:
                self._after(key, self._undo_start(key, Unavailable("Its start has failed.")))

    def _begin_start(self, key: ProcessKey, wanted: WantedProcess) -> None:
        there = self._parts.table.get(key)
        seen = there or _on_its_devices(Seen(key=key, stage=Stage.FORKING, uid=None), wanted)
        self._parts.table.put(forking(seen))
        self._after(key, self._start(key, wanted))

    def _begin_stop(self, key: ProcessKey, grace_s: float) -> None:
        self._parts.table.put(
            replace(self._parts.table[key], stage=Stage.STOPPING, registered=False)
        )
        self._after(key, self._stop(key, grace_s))

    def _begin_giving_up(self, key: ProcessKey, reason: str) -> None:
        self._parts.table.put(failed(self._parts.table[key], reason, time.monotonic()))
        self._after(key, self._end_fully(key, GRACE_AT_THE_END_S))

    def _mark_retired(self, key: ProcessKey) -> None:
        there = self._parts.table.get(key)
        wanted = self._wanted()
        seen = there or Seen(key=key, stage=Stage.RETIRED, uid=None)
        if there is None and wanted is not None:
            seen = _on_its_devices(seen, wanted.processes[key])
        self._parts.table.put(replace(seen, stage=Stage.RETIRED, registered=False))
        self._parts.keeper.keep(self._parts.table[key])

    async def _start(self, key: ProcessKey, wanted: WantedProcess) -> None:
        seen = self._parts.table[key]
        if seen.stage in GOING:
            return
        try:
            prepared = await prepare(seen, wanted, self._parts)
        except (PoolError, OSError) as error:
            self._settle_failed_start(key, error)
            return
        if self._parts.table[key].stage in GOING:
            return
        self._parts.table.put(prepared.seen)
        try:
            process = await fork(prepared, self._parts)
        except DeviceHeldElsewhere as error:
            self._settle_failed_start(key, error)
            # Said together with the failure, so that the manager does not try again at once.
            self._parts.devices.look_at_locks()
        except (PoolError, OSError) as error:
            await self._undo_start(key, error)
        else:
            self._keep(forked(self._parts.table[key], process))
            self._parts.processes.watch(key, process, has_parent=True)

    async def _undo_start(self, key: ProcessKey, error: PoolError | OSError) -> None:
        """The zygote's answer may be lost and its child not: nothing may stay of it."""
        self._parts.table.put(replace(self._parts.table[key], used=True))
        await self._end_fully(key, 0)
        self._settle_failed_start(key, error)

    def _settle_failed_start(self, key: ProcessKey, error: PoolError | OSError) -> None:
        seen = self._parts.table[key]
        if seen.stage is not Stage.FORKING:
            return
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"This host cannot start a process: {error.strerror or error}."
        may_work_later = isinstance(error, Unavailable | OSError)
        now_s = time.monotonic()
        self._keep(after_failed_start(seen, reason, may_work_later=may_work_later, now_s=now_s))

    async def _stop(self, key: ProcessKey, grace_s: float) -> None:
        await self._end_fully(key, grace_s)
        await self._parts.dropping.after_end(key, self._wanted())
        seen = self._parts.table[key]
        self._parts.groups.remove(key)
        if seen.device is None or not seen.used:
            self.forget(seen)
            return
        self._keep(replace(seen, stage=Stage.FREEING, process=None, gone_at_s=time.monotonic()))
        self._parts.devices.look_soon()

    def forget(self, seen: Seen) -> None:
        """Nothing of it is left, its devices are free of it."""
        self._parts.keeper.forget(seen)
        key = seen.key
        self._parts.socket.forget(key.role, key.claim_id, key.lease_id or "")
        self._parts.table.forget(key)
        for device in seen.devices:
            # One lock a device, however many leases it has.
            if not self._parts.table.on_device(device):
                self._parts.locks.release(device)

    async def _settle_own_end(self, ended: Ended) -> None:
        await self._end_fully(ended.key, 0)
        seen = self._parts.table[ended.key]
        if seen.stage is not Stage.ALIVE or seen.process != ended.process:
            return
        after = after_own_end(seen, ended, self._circumstances(ended.key))
        logger.warning("%s %s and is now %s", ended.key, ended.words, after.stage)
        self._keep(after)

    async def _end_fully(self, key: ProcessKey, grace_s: float) -> None:
        """Until nothing of it is left, however long that takes; a report says what does not die."""
        while not await self._is_ended(key, grace_s):
            grace_s = 0
            seen = self._parts.table[key]
            problem = "A process of it survives SIGKILL, as one stuck in the driver does."
            self._parts.table.put(replace(seen, problem=problem))
        self._hold_devices(self._parts.table[key])

    async def _is_ended(self, key: ProcessKey, grace_s: float) -> bool:
        seen = self._parts.table[key]
        footprint = self._parts.footprint(seen)
        return await self._parts.sweeper.end(footprint, grace_s=grace_s, devices=seen.devices)

    def _hold_devices(self, seen: Seen) -> None:
        """Keep devices whose worker has taken their locks with it, until they are proven free."""
        for device in seen.devices if seen.used else ():
            try:
                self._parts.locks.acquire(device)
            except PoolError as error:
                logger.warning("The lock of %s's device is lost: %s", seen.key, error)

    def _circumstances(self, key: ProcessKey) -> Circumstances:
        wanted, scheduler = self._wanted(), self._parts.table.get(key.scheduler)
        process = wanted.processes.get(key) if wanted is not None else None
        return Circumstances(
            retires=process is not None and process.retires,
            scheduler_failed=scheduler is not None and scheduler.stage is Stage.FAILED,
            last_lines=last_lines(self._parts.folder.log(key)),
            now_s=time.monotonic(),
        )

    def _keep(self, seen: Seen) -> None:
        self._parts.table.put(seen)
        self._parts.keeper.keep(seen)

    def _after(self, key: ProcessKey, work: Coroutine[None, None, None]) -> None:
        """Do this once what was begun about the same process is done."""
        before = self._work.get(key)
        task = asyncio.create_task(_in_turn(before, work))
        self._work[key] = task
        task.add_done_callback(lambda done: self._done(key, done))

    def _done(self, key: ProcessKey, task: asyncio.Task[None]) -> None:
        if self._work.get(key) is task:
            del self._work[key]
        if not task.cancelled() and task.exception() is not None:
            logger.error("The agent failed at %s", key, exc_info=task.exception())


def _on_its_devices(seen: Seen, wanted: WantedProcess) -> Seen:
    first, *further = wanted.devices or (None,)
    return replace(seen, device=first, further=tuple(filter(None, further)), share=wanted.share)


async def _in_turn(before: asyncio.Task[None] | None, work: Coroutine[None, None, None]) -> None:
    try:
        if before is not None:
            await asyncio.wait([before])
    except asyncio.CancelledError:
        work.close()
        raise
    await work
