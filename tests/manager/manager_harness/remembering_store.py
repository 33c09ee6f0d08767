"""A store that only remembers: a small stand-in for the disk."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from jupyter_gpupool.manager.service.records import ClaimRecord
from jupyter_gpupool.manager.store.changes import Changes
from jupyter_gpupool.manager.store.reading import Everything
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.ids import UserName

NOTHING = Everything(
    claims=(),
    leases=(),
    hosts=(),
    host_tokens=(),
    tokens=(),
    users=(),
    once=(),
    events=(),
    boot=1,
)


@dataclass
class RememberingStore:
    """A store that keeps what was committed in a list, and fails when told to.

    Attributes:
        broken: It neither writes nor says so in time.
        mute: It writes, and its answer is lost.
        unreadable: Nobody can find out which of the two it was.
        refused: Name of a claim that no database can hold.
        tried: How many commits were begun.
    """

    everything: Everything = NOTHING
    commits: list[Changes] = field(default_factory=list)
    broken: bool = False
    mute: bool = False
    unreadable: bool = False
    has_written: bool = False
    refused: str = ""
    tried: int = 0

    def load(self) -> Everything:
        """What was there at start."""
        return self.everything

    async def commit(self, changes: Changes) -> None:
        """Remember, or fail."""
        await asyncio.sleep(0)
        self.tried += 1
        self.has_written = False
        if any(self.refused == record.claim.name != "" for record in changes.new_claims):
            raise UnicodeError("No database takes this.")
        self.has_written = not self.broken
        if self.broken:
            raise Unavailable("The database cannot be written: the disk is full.")
        self.commits.append(changes)
        if self.mute:
            raise Unavailable("The database cannot be written: the connection is lost.")

    async def settle(self) -> bool:
        """Whether the commit that failed came through."""
        await asyncio.sleep(0)
        if self.unreadable:
            raise Unavailable("The database cannot be read: the connection is lost.")
        return self.has_written

    async def ended_claims(self, owner: UserName | None, limit: int) -> list[ClaimRecord]:
        """Nothing ended before."""
        return []

    async def prune(
        self, before: datetime, keys_before: datetime, recorded_before: datetime
    ) -> None:
        """There is nothing to delete."""

    async def sum_up(self, now: datetime) -> None:
        """There is nothing to sum up."""
