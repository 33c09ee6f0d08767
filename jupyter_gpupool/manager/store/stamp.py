"""The mark each transaction leaves: which start of the manager wrote it, and its how-manieth.

Called by the store. It tells after a failed commit whether the transaction came through all the
same, and it lets no transaction through on a database that somebody else has written since.
"""

from dataclasses import dataclass, replace

from sqlalchemy import Connection, insert, select, update

from jupyter_gpupool.pool.errors import Unavailable

from .tables import META

_NAME = "stamp"


class Diverged(Unavailable):
    """Memory and database are no longer the same: only a new start helps."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A transaction's mark.

    Attributes:
        boot: How often a manager has started on this database.
        batch: How many transactions this start has made.
    """

    boot: int
    batch: int = 0

    @property
    def next(self) -> "Stamp":
        """The mark of the following transaction."""
        return replace(self, batch=self.batch + 1)

    @property
    def text(self) -> str:
        """As it is stored."""
        return f"{self.boot}.{self.batch}"


def begin_stamps(connection: Connection, first: Stamp) -> None:
    """Leave the first mark of this start: from now on nobody else's transaction gets through."""
    values = {"value": first.text}
    if not connection.execute(update(META).where(META.c.name == _NAME).values(values)).rowcount:
        connection.execute(insert(META).values(name=_NAME, **values))


def advance(connection: Connection, before: Stamp) -> None:
    """Leave the mark after `before`, as a part of the transaction.

    Raises:
        Diverged: If the last transaction was not that one.
    """
    this = META.c.name == _NAME, META.c.value == before.text
    if connection.execute(update(META).where(*this).values(value=before.next.text)).rowcount != 1:
        raise _taken_over()


def came_through(connection: Connection, before: Stamp) -> bool:
    """Whether the transaction after `before` is durable.

    Raises:
        Diverged: If neither it nor `before` was the last one.
    """
    last = connection.execute(select(META.c.value).where(META.c.name == _NAME)).scalar()
    if last not in (before.text, before.next.text):
        raise _taken_over()
    return str(last) == before.next.text


def _taken_over() -> Diverged:
    return Diverged(
        "Something else has written to this manager's database.",
        hint="Run one manager on a database, and start this one again.",
    )
