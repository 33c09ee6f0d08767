"""One manager at a time on a database, wherever the managers run.

Called by the store before it reads or migrates anything. The state folder's own lock does not see
a second manager on another machine, or one with another folder and the same URL.
"""

import fcntl
import os
from collections.abc import Callable

from sqlalchemy import Engine, text

from jupyter_gpupool.pool.errors import Unavailable

from .database import name_of

Release = Callable[[], None]
_KEY = 0x6770_7570_6F6F_6C00
"""Of the advisory lock: the letters of gpupool. It is counted for each PostgreSQL database."""


def lock_database(engine: Engine) -> Release:
    """Take the database for this process; what is returned lets go of it.

    Raises:
        Unavailable: If another manager has it.
    """
    if engine.dialect.name == "postgresql":
        return _lock_postgresql(engine)
    path = engine.url.database if engine.dialect.name == "sqlite" else None
    if path and path != ":memory:":
        return _lock_beside(engine, path)
    return lambda: None


def _lock_beside(engine: Engine, path: str) -> Release:
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise _in_use(engine) from None
    return lambda: os.close(lock)


def _lock_postgresql(engine: Engine) -> Release:
    # Held by its session, so that it goes with this process however that ends. Should the session
    # be lost earlier, the stamp that each transaction checks still keeps two managers apart.
    session = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    if not session.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}):
        session.close()
        raise _in_use(engine)
    return session.close


def _in_use(engine: Engine) -> Unavailable:
    return Unavailable(
        f"Another manager uses the database {name_of(engine)}.",
        hint="Stop it first; one database is one manager's.",
    )
