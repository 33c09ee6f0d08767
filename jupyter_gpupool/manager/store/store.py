"""The store: one writer's thread, and readers beside it.

Called by the service alone. Whatever fails here comes out as one `Unavailable` sentence, with
nothing written; the next call tries anew on a fresh connection.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, Engine, delete, insert

from jupyter_gpupool.manager.service.records import ClaimRecord
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.event import Event
from jupyter_gpupool.pool.ids import ClaimId, UserName

from . import reading, writing
from .changes import Changes
from .database import in_words, open_engine
from .migrate import migrate
from .sealing import Seal
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
            migrate(self._engine)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="gpupool-writer")
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="gpupool-reader")

    def load(self) -> reading.Everything:
        """All that lives. Counts the start, so it also proves that the database can be written.

        Raises:
            Unavailable: If it cannot.
        """
        with in_words("opened"), self._engine.begin() as connection:
            return reading.read_everything(connection, self._seal)

    async def commit(self, changes: Changes) -> None:
        """Make changes durable, all of them or none.

        Raises:
            Unavailable: If the database fails; nothing is written then.
        """
        await self._write(lambda connection: writing.write(connection, changes, self._seal))

    async def prune(self, before: datetime, keys_before: datetime) -> None:
        """Forget what is too old.

        Raises:
            Unavailable: If the database fails.
        """
        await self._write(lambda connection: writing.prune(connection, before, keys_before))

    async def prove_writable(self) -> None:
        """Write something that means nothing.

        Raises:
            Unavailable: If it cannot be written.
        """
        await self._write(_touch)

    async def claim(self, claim_id: ClaimId) -> ClaimRecord | None:
        """A claim that may have ended long ago."""
        return await self._read(lambda c: reading.read_claim(c, claim_id, self._seal))

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

    async def oldest_event(self) -> int:
        """The position of the oldest event still kept."""
        return await self._read(reading.oldest_event)

    def close(self) -> None:
        """Let go of the database; what was committed is there already."""
        self._writer.shutdown()
        self._readers.shutdown()
        self._engine.dispose()

    async def _write(self, work: Callable[[Connection], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, self._in_transaction, work)

    def _in_transaction(self, work: Callable[[Connection], None]) -> None:
        try:
            with in_words("written"), self._engine.begin() as connection:
                work(connection)
        except Unavailable:
            # A connection that met a full or vanished disk may not recover by itself.
            self._engine.dispose()
            raise

    async def _read(self, work: Callable[[Connection], _R]) -> _R:
        def read() -> _R:
            with in_words("read"), self._engine.connect() as connection:
                return work(connection)

        return await asyncio.get_running_loop().run_in_executor(self._readers, read)


def _touch(connection: Connection) -> None:
    connection.execute(delete(META).where(META.c.name == "probe"))
    connection.execute(insert(META).values(name="probe", value=""))
