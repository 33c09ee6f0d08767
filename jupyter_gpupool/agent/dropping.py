"""Removes a claim's folder from the agent's state folder, as soon as nothing of it runs here.

Called by `carry_out` after the end of each process of a claim that is wanted no more, and by
`housekeeping` for what a dead agent has left. Folders are moved out of their users' reach at once;
removing what is in them may take long, and a device is not kept waiting for it.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid
from jupyter_gpupool.protocol.launch import Role

from .claim_folders import claim_of, remove_folders, set_aside_before, set_aside_what_is_over
from .keys import ProcessKey
from .leftovers import Leftovers
from .removing import Stuck
from .seen import Seen, Stage
from .state_folder import StateFolder
from .table import Table
from .wanted import Wanted

_WAITED_FOR_S = 1.0
_RUNS = frozenset({Stage.FORKING, Stage.ALIVE, Stage.STOPPING, Stage.FAILED})
"""Stages in which there may be a process."""


class Dropping:
    """Removes the folders of one host's claims.

    Args:
        changed: Called when something that could not be removed is known later than it was begun.
    """

    def __init__(
        self,
        table: Table,
        folder: StateFolder,
        leftovers: Leftovers,
        changed: Callable[[], None],
    ) -> None:
        self._table = table
        self._folder = folder
        self._leftovers = leftovers
        self._changed = changed
        self._one_by_one = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self._ended: set[ProcessKey] = set()

    async def after_end(self, key: ProcessKey, wanted: Wanted | None) -> None:
        """A process has ended with all that belongs to it."""
        # Its row says so when this is done, and whatever ends meanwhile must not wait for that.
        self._ended.add(key)
        try:
            mine = [seen for seen in self._table.values() if seen.key.claim_id == key.claim_id]
            if gone := self._what_is_over(key.claim_id, mine, wanted):
                await self._begin(gone, _devices_of(mine))
        finally:
            self._ended.discard(key)

    def _what_is_over(
        self, claim_id: ClaimId, rows: Iterable[Seen], wanted: Wanted | None
    ) -> tuple[Path, ...]:
        running = [x for x in rows if x.stage in _RUNS and x.key not in self._ended]
        if any(seen.key.role is Role.WORKER for seen in running):
            return ()
        if wanted is None:
            # Nobody has said yet whether the claim is over; what the last agent began is known.
            return tuple(p for p in set_aside_before(self._folder) if claim_of(p) == claim_id)
        if claim_id in wanted.claims:
            return ()
        return set_aside_what_is_over(self._folder, claim_id, all_of_it=not running)

    async def finish(self, gone: Iterable[Path]) -> None:
        """Remove folders that were set aside, by whomever."""
        await self._remove(gone, ())

    async def _begin(self, gone: Sequence[Path], devices: Sequence[DeviceUuid]) -> None:
        task = asyncio.create_task(self._remove(gone, devices))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.wait([task], timeout=_WAITED_FOR_S)

    async def _remove(self, gone: Iterable[Path], devices: Sequence[DeviceUuid]) -> None:
        async with self._one_by_one:
            stuck = await asyncio.to_thread(_remove_each, tuple(gone))
        for path, each in stuck:
            self._leftovers.owe(claim_of(path), path, each, devices)
        if stuck:
            self._changed()


def _remove_each(folders: Iterable[Path]) -> list[tuple[Path, Stuck]]:
    return [(path, stuck) for path in folders for stuck in remove_folders([path])]


def _devices_of(rows: Iterable[Seen]) -> tuple[DeviceUuid, ...]:
    return tuple(dict.fromkeys(device for row in rows for device in row.devices))
