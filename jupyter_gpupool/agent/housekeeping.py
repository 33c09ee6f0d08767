"""What has to be looked at now and then: memory, devices, logs, folders, what got stuck.

Made and run by `host`. Nothing here is waited for by anyone, and nothing here may hold up what is.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.pool.lease import WHOLE_DEVICE

from .carry_out import CarryOut
from .claim_folders import (
    LOGS_KEPT_S,
    cut_large,
    remove_old_logs,
    set_aside_before,
    set_aside_working_folders,
)
from .device_watch import Pace
from .launching import part_bytes
from .memory import kill, outgrown
from .parts import Parts
from .seen import Stage
from .shares import ShareWatch, Taken, used_bytes
from .stopped import REASON, StoppedWatch, sentence_on, sentence_to_user
from .stopping import send
from .temporary import forget_dead
from .zygote_logs import remove_old_zygote_logs

logger = logging.getLogger(__name__)

_TIDY_EVERY_S = 60.0
_RETRY_EVERY_S = 2.0


class Housekeeping:
    """The regular work of one host's agent.

    Args:
        keep: The claims whose folders stay.
        turn: Compares what is wanted with what is.

    Attributes:
        problem: What is wrong with what runs; "" if nothing is.
    """

    def __init__(
        self,
        parts: Parts,
        hands: CarryOut,
        pace: Pace,
        *,
        keep: Callable[[], Collection[ClaimId]],
        turn: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._hands = hands
        self._pace = pace
        self._keep = keep
        self._turn = turn
        self._stopped, self._stopped_zygotes = StoppedWatch(), StoppedWatch()
        self._shares = ShareWatch(pace.share_grace_s)
        self._retried_at_s = 0.0
        self.problem = ""

    async def tick_for_ever(self) -> None:
        """Each second while anything runs."""
        while True:
            await asyncio.sleep(self._pace.busy_s if self._parts.table else self._pace.idle_s)
            self._watch_memory()
            self._watch_shares()
            self._watch_stopped()
            self._watch_zygotes()
            self._parts.devices.judge(self._hands.forget)
            self._parts.processes.look()
            self._parts.keeper.retry()
            self._hands.look_after()
            self._turn_if_orphaned()

    async def tidy_for_ever(self) -> None:
        """Logs of what runs each second, for they can grow fast; all else each minute."""
        tidied_at_s = time.monotonic()
        await self._parts.dropping.finish(set_aside_before(self._parts.folder))
        await asyncio.to_thread(forget_dead)
        while True:
            await asyncio.sleep(self._pace.busy_s if self._parts.table else self._pace.idle_s)
            await self._retry_removals()
            logs = [self._parts.folder.log(key) for key in self._parts.table]
            logs += self._parts.environments.logs
            if time.monotonic() - tidied_at_s < _TIDY_EVERY_S:
                if cut_large(logs, only_look=True):
                    await asyncio.to_thread(cut_large, logs)
                continue
            await self._tidy()
            tidied_at_s = time.monotonic()

    async def _tidy(self) -> None:
        folder, keep = self._parts.folder, frozenset(self._keep())
        try:
            # Here, and not in the thread: a claim that is wanted meanwhile has its folder kept.
            gone = set_aside_working_folders(folder, keep=keep)
            await self._parts.dropping.finish(gone)
            await asyncio.to_thread(forget_dead)
            await asyncio.to_thread(remove_old_logs, folder, keep=keep)
            self._remove_old_zygote_logs()
        except OSError as error:
            logger.warning("Old folders could not be tidied: %s", error)
        self._parts.sweeper.leftovers.forget_others(
            keep | {key.claim_id for key in self._parts.table}
        )
        self._parts.records.tidy()
        self._parts.groups.tidy()

    async def _retry_removals(self) -> None:
        """What keeps a device from being leased may be removable by now."""
        leftovers = self._parts.sweeper.leftovers
        if not leftovers.owes or time.monotonic() - self._retried_at_s < _RETRY_EVERY_S:
            return
        self._retried_at_s = time.monotonic()
        if await asyncio.to_thread(leftovers.retry):
            self._parts.devices.look_soon()
            self._turn()

    def _remove_old_zygote_logs(self) -> None:
        # Not in a thread: one that is started meanwhile would write into a file that is gone.
        remove_old_zygote_logs(
            self._parts.folder.logs,
            keep=self._parts.environments.logs,
            older_than_s=time.time() - LOGS_KEPT_S,
        )

    def _turn_if_orphaned(self) -> None:
        if any(seen.stage is Stage.FAILED for seen in self._parts.table.values()):
            self._turn()

    def _watch_memory(self) -> None:
        for found in outgrown(self._parts.table.values()):
            logger.warning("%s is killed: %s", found.key, found.reason)
            self._parts.table.put(replace(self._parts.table[found.key], killed_for=found.reason))
            kill(found)

    def _watch_shares(self) -> None:
        """End who takes more of a shared device than its part, after a warning."""
        for found in self._shares.look(self._taken(), time.monotonic()):
            seen = self._parts.table[found.key]
            why = found.kill_for or seen.killed_for
            self._parts.table.put(replace(seen, over_share=found.warning, killed_for=why))
            if found.kill_for and seen.process is not None:
                logger.warning("%s is killed: %s", found.key, found.kill_for)
                send(seen.process, signal.SIGKILL)

    def _taken(self) -> Iterator[Taken]:
        devices = self._parts.devices
        for key, seen in self._parts.table.items():
            if seen.share == WHOLE_DEVICE or seen.stage is not Stage.ALIVE or seen.device is None:
                continue
            device, sample = devices.known.get(seen.device), devices.samples.get(seen.device)
            if device is not None and sample is not None:
                yield Taken(
                    key=key,
                    used_bytes=used_bytes(sample, devices.owners.get(seen.device, {}), key),
                    part_bytes=part_bytes(device.memory_bytes, seen.share),
                )

    def _watch_stopped(self) -> None:
        stopped = self._stopped.look(self._parts.table.values())
        for found in stopped:
            if found.starts:
                logger.warning("%s is killed: %s", found.key, REASON)
                self._parts.table.put(replace(self._parts.table[found.key], killed_for=REASON))
                send(found.process, signal.SIGKILL)
        told = {found.key: sentence_to_user(found) for found in stopped if not found.starts}
        for key, seen in self._parts.table.items():
            if seen.stopped != (text := told.get(key, "")):
                self._parts.table.put(replace(seen, stopped=text))
        if self.problem != (problem := sentence_on(stopped)):
            self.problem = problem
            self._turn()

    def _watch_zygotes(self) -> None:
        for process in self._stopped_zygotes.look_at_pids(self._parts.environments.pids):
            logger.warning("Zygote %s was stopped, by SIGSTOP or a debugger: killed.", process.pid)
            send(process, signal.SIGKILL)
