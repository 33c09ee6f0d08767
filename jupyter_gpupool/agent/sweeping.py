"""Ends processes for good: asks, waits, then kills everything that belongs to them.

Called by `carry_out`. Nothing of a claim may be left running, so the process table is read again
after each sweep until it shows none of them. A GPU server has thousands of processes: the table is
read in a thread, and one reading serves all endings that wait for it.
"""

import asyncio
import functools
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from jupyter_gpupool.pool.ids import DeviceUuid

from . import procfs
from .control_groups import pids_in
from .footprint import Footprint, Kinship, Look
from .leftovers import Leftovers
from .procfs import ProcessRow
from .stopping import LOOK, ask_to_end, send

_SWEEPS_EVERY_S = 0.01
_SLOWEST_SWEEP_S = 0.5

Round = list[tuple[Footprint, asyncio.Future[int]]]
Note = Callable[[Footprint, Sequence[int]], None]
"""Told of processes that are about to be killed."""


class Sweeper:
    """Sweeps for all endings of one agent.

    Attributes:
        rounds: How often the process table was read.
        leftovers: What processes leave behind, and what becomes of it.
    """

    def __init__(self, leftovers: Leftovers | None = None) -> None:
        self.leftovers = leftovers or Leftovers()
        self._next: Round = []
        self._sweeping: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sweeper")
        self.rounds = 0

    async def end(
        self,
        footprint: Footprint,
        *,
        grace_s: float,
        give_up_after_s: float = 5.0,
        devices: Sequence[DeviceUuid] = (),
    ) -> bool:
        """End all of it, and remove what it leaves; whether no process is left.

        False means that something survives SIGKILL, as a process stuck in the driver does: call
        again. What cannot be removed is told of these devices.
        """
        if footprint.leader is not None and grace_s > 0:
            # Whoever ends by itself is asked no more afterwards.
            await asyncio.to_thread(self.leftovers.note, footprint, [footprint.leader.pid])
            await ask_to_end(footprint.leader, grace_s)
        deadline_s = time.monotonic() + give_up_after_s
        pause_s = _SWEEPS_EVERY_S
        while await self.kill_all(footprint):
            if time.monotonic() > deadline_s:
                return False
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _SLOWEST_SWEEP_S)
        await asyncio.to_thread(self.leftovers.clean, footprint, devices)
        return True

    async def kill_all(self, footprint: Footprint) -> int:
        """Kill all that is there of it; how many that were. The next round serves it."""
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._next.append((footprint, found))
        if self._sweeping is None:
            self._sweeping = asyncio.create_task(self._sweep())
        return await found

    def close(self) -> None:
        """Sweep no more."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._next:
                served, self._next = self._next, []
                wanted = [footprint for footprint, _ in served]
                try:
                    note = self.leftovers.note
                    counts = await loop.run_in_executor(self._thread, kill_each, wanted, note)
                except Exception as error:  # noqa: BLE001 - whatever it is, those that wait hear it
                    _tell_failure(served, error)
                else:
                    _tell(served, counts)
                self.rounds += 1
        finally:
            self._sweeping = None


def kill_each(footprints: Sequence[Footprint], note: Note) -> list[int]:
    """Kill all that is there of each right now, and note it before; how many that were each."""
    counts = []
    for footprint, rows in zip(footprints, find_each(footprints), strict=True):
        note(footprint, [row.id.pid for row in rows])
        for row in rows:
            send(row.id, signal.SIGKILL)
        counts.append(len(rows))
    return counts


def find_each(footprints: Sequence[Footprint]) -> list[tuple[ProcessRow, ...]]:
    """All that is there of each right now, from one reading of the process table."""
    kinship = Kinship(procfs.read_rows(), _look_once())
    return [kinship.members(one, grouped=_grouped(one)) for one in footprints]


def _look_once() -> Look:
    """Looks at each process at most once."""
    cached = functools.cache
    return Look(
        environment=cached(LOOK.environment), output=cached(LOOK.output), user=cached(LOOK.user)
    )


def _grouped(footprint: Footprint) -> frozenset[int]:
    return pids_in(footprint.group) if footprint.group else frozenset()


def _tell(served: Round, counts: Sequence[int]) -> None:
    for (_, found), count in zip(served, counts, strict=True):
        if not found.done():
            found.set_result(count)


def _tell_failure(served: Round, error: Exception) -> None:
    for _, found in served:
        if not found.done():
            found.set_exception(error)
