"""When records are written: what a dead agent could not be replaced without at once, the rest soon.

Used by `carry_out` and `children`. That a process runs, and what it says, can be found out again by
its marks and from itself, so that is written together a moment later: no claim waits for it, and a
process that never stops talking costs one file a moment.
"""

import asyncio

from jupyter_gpupool.pool.errors import Unavailable

from .keys import ProcessKey
from .records import Records
from .seen import Seen, Stage
from .table import Table

_SOON_S = 0.05


class RecordKeeper:
    """Keeps the records of one agent's table.

    Attributes:
        problem: One sentence when the state folder cannot be written, else "".
    """

    def __init__(self, records: Records, table: Table) -> None:
        self._records = records
        self._table = table
        self._due = set[ProcessKey]()
        self._timer: asyncio.TimerHandle | None = None
        self.problem = ""

    def keep(self, seen: Seen) -> None:
        """Write what is known of a process; a folder that cannot be written is said in reports."""
        if seen.stage is not Stage.ALIVE:
            self._write(seen)
            return
        self._due.add(seen.key)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SOON_S, self.write_due)

    def forget(self, seen: Seen) -> None:
        """Nothing is left of a process."""
        self._due.discard(seen.key)
        try:
            self._records.remove(seen)
        except Unavailable as error:
            self.problem = str(error)

    def write_due(self) -> None:
        """Write all that still has to be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due, self._due = self._due, set[ProcessKey]()
        for key in due:
            if key in self._table:
                self._write(self._table[key])

    def retry(self) -> None:
        """If the folder could not be written, try again."""
        if self.problem:
            for seen in self._table.values():
                self._write(seen)

    def _write(self, seen: Seen) -> None:
        self._due.discard(seen.key)
        try:
            self._records.write(seen)
            self.problem = ""
        except Unavailable as error:
            self.problem = str(error)
