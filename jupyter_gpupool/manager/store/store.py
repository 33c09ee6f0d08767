"""The store: one writer's thread, and readers beside it.

Called by the service alone. Whatever fails here comes out as one `Unavailable` sentence; the next
call tries anew on a fresh connection. Whether a failed commit came through all the same, `settle`
can tell.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, Engine, delete, insert

from jupyter_gpupool.manager.service.records import ClaimRecord, PolicyRevision, RecordedUse
from jupyter_gpupool.manager.service.used_days import UsedDay
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.event import Event
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.lease import Lease

from . import reading, used_days, writing
from .changes import Changes
from .database import in_words, name_of, open_engine
from .database_lock import lock_database
from .migrate import migrate
from .sealing import Seal
from .stamp import Stamp, advance, begin_stamps, came_through
from .tables import META

_R = TypeVar("_R")


class Store:
    """The database of one manager.

    Raises:
        Unavailable: On opening, if the database cannot be read or written.
    """

    def __init__(self, url: str, seal: Seal) -> None:
        self._seal = seal
        with in_words("opened"):
            self._engine: Engine = open_engine(url)
        self._name = name_of(self._engine)
        with in_words("opened", self._name):
            self._unlock = lock_database(self._engine)
            self._migrate()
        self._stamp: Stamp | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="gpupool-writer")
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="gpupool-reader")

    def load(self) -> reading.Everything:
        """All that lives. Counts the start, so it also proves that the database can be written.

        Raises:
            Unavailable: If it cannot.
        """
        with in_words("opened", self._name), self._engine.begin() as connection:
            found = reading.read_everything(connection, self._seal)
            first = Stamp(found.boot)
            begin_stamps(connection, first)
        self._stamp = first
        return found

    async def commit(self, changes: Changes) -> None:
        """Make changes durable, all of them or none.

        Raises:
            Diverged: If somebody else has written since, or the rows contradict the database.
            Unavailable: If the database fails; `settle` tells whether it was written.
        """
        stamp = self._stamp
        assert stamp is not None, "nothing is committed before the books are loaded"

        def write(connection: Connection) -> None:
            advance(connection, stamp)
            writing.write(connection, changes, self._seal)

        await self._write(write)
        self._stamp = stamp.next

    async def settle(self) -> bool:
        """Whether the commit that failed last came through all the same.

        Raises:
            Diverged: If somebody else has written since.
            Unavailable: If the database cannot be read.
        """
        stamp = self._stamp
        assert stamp is not None, "nothing is committed before the books are loaded"
        is_written = await self._read(lambda connection: came_through(connection, stamp))
        if is_written:
            self._stamp = stamp.next
        return is_written

    async def prune(
        self, before: datetime, keys_before: datetime, recorded_before: datetime
    ) -> None:
        """Forget what is too old.

        Raises:
            Diverged: If somebody else has written since.
            Unavailable: If the database fails.
        """
        stamp = self._stamp
        assert stamp is not None, "nothing is pruned before the books are loaded"

        def prune(connection: Connection) -> None:
            came_through(connection, stamp)
            writing.prune(connection, before, keys_before, recorded_before)

        await self._write(prune)

    async def sum_up(self, now: datetime) -> None:
        """Write down what was used on the days that are over, before any of it is forgotten.

        Raises:
            Diverged: If somebody else has written since.
            Unavailable: If the database fails.
        """
        while True:
            # Whatever takes long is beside the writer; what it hands over is one day at a time.
            found = await self._read(lambda c: used_days.next_summed(c, now))
            if found is None:
                return
            await self._keep_summed(found)

    async def _keep_summed(self, summed: used_days.SummedDay) -> None:
        stamp = self._stamp
        assert stamp is not None, "nothing is summed up before the books are loaded"

        def keep(connection: Connection) -> None:
            came_through(connection, stamp)
            used_days.keep_summed(connection, summed)

        await self._write(keep)

    async def prove_writable(self) -> None:
        """Write something that means nothing.

        Raises:
            Unavailable: If it cannot be written.
        """
        await self._write(_touch)

    async def claim(self, claim_id: ClaimId) -> ClaimRecord | None:
        """A claim that may have ended long ago."""
        return await self._read(lambda c: reading.read_claim(c, claim_id, self._seal))

    async def leases_of(self, claim_id: ClaimId) -> list[Lease]:
        """All that a claim ever had and that are still kept, oldest first."""
        return await self._read(lambda c: reading.read_leases(c, claim_id))

    async def ended_claims(self, owner: UserName | None, limit: int) -> list[ClaimRecord]:
        """The claims that ended last, youngest first."""
        return await self._read(lambda c: reading.read_ended(c, owner, limit, self._seal))

    async def events(
        self, *, after: int, owner: UserName | None, claim_id: ClaimId | None, limit: int
    ) -> list[Event]:
        """Events after a position, oldest first."""
        return await self._read(
            lambda c: reading.read_events(
                c, after=after, owner=owner, claim_id=claim_id, limit=limit
            )
        )

    async def policies(self, *, before: int | None, limit: int) -> list[PolicyRevision]:
        """The revisions of the policy, newest first."""
        return await self._read(lambda c: reading.read_policies(c, before, limit))

    async def policy(self, revision: int) -> PolicyRevision | None:
        """One revision of the policy."""
        return await self._read(lambda c: reading.read_policy(c, revision))

    async def recorded(self, since: datetime) -> list[RecordedUse]:
        """What was seen of claims since a moment, claim by claim, oldest first."""
        return await self._read(lambda c: reading.read_recorded(c, since))

    async def used(
        self,
        since_day: int,
        now: datetime,
        open_records: Sequence[RecordedUse] = (),
        owner: UserName | None = None,
    ) -> list[UsedDay]:
        """What each claim held and used since the beginning of a day (UTC); of one owner or all."""
        return await self.add_up(list, since_day, now, open_records, owner)

    async def add_up(
        self,
        add: Callable[[Iterable[UsedDay]], _R],
        since_day: int,
        now: datetime,
        open_records: Sequence[RecordedUse] = (),
        owner: UserName | None = None,
    ) -> _R:
        """What comes of adding that up in the reader's thread, one by one."""
        return await self._read(
            lambda c: add(used_days.read_used(c, since_day, now, open_records, owner))
        )

    async def oldest_event(self) -> int:
        """The position of the oldest event still kept."""
        return await self._read(reading.oldest_event)

    def close(self) -> None:
        """Let go of the database; what was committed is there already."""
        self._writer.shutdown()
        self._readers.shutdown()
        self._engine.dispose()
        self._unlock()

    def _migrate(self) -> None:
        try:
            migrate(self._engine)
        except BaseException:
            self._engine.dispose()
            self._unlock()
            raise

    async def _write(self, work: Callable[[Connection], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, self._in_transaction, work)

    def _in_transaction(self, work: Callable[[Connection], None]) -> None:
        try:
            with in_words("written", self._name), self._engine.begin() as connection:
                work(connection)
        except Unavailable:
            # A connection that met a full or vanished disk may not recover by itself.
            self._engine.dispose()
            raise

    async def _read(self, work: Callable[[Connection], _R]) -> _R:
        def read() -> _R:
            with in_words("read", self._name), self._engine.connect() as connection:
                return work(connection)

        return await asyncio.get_running_loop().run_in_executor(self._readers, read)


def _touch(connection: Connection) -> None:
    connection.execute(delete(META).where(META.c.name == "probe"))
    connection.execute(insert(META).values(name="probe", value=""))
