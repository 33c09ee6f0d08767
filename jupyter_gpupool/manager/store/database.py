"""Opening the database, and turning its failures into sentences.

SQLite gets what a single writer needs to lose nothing: a write-ahead log that is synced at every
commit. Any other SQLAlchemy URL is taken as it is.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from jupyter_gpupool.pool.errors import BadRequest, Unavailable

from .stamp import Diverged

_SETTINGS = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000", "cache_size=-4000")
_MAKE_ROOM = (
    "Delete files on it by hand, for example some that your tasks wrote, then try again; nothing"
    " acknowledged is lost."
)
_PLAIN_WORDS = (
    ("disk is full", "the disk is full", _MAKE_ROOM),
    ("no space left", "the disk is full", _MAKE_ROOM),
    ("quota exceeded", "the disk is full for this user", _MAKE_ROOM),
    ("readonly", "it may only be read", "Make the state folder writable for the manager."),
    ("read-only", "it may only be read", "Make the state folder writable for the manager."),
    ("unable to open", "its file cannot be opened", "Check the state folder and its rights."),
    ("malformed", "its file is damaged", "Put back a copy of the database."),
    ("not a database", "its file is damaged", "Put back a copy of the database, or move it away."),
    ("locked", "another process holds it", "Stop whatever else uses the database."),
    ("i/o error", "the disk does not answer", "Check the disk; nothing acknowledged is lost."),
)


def open_engine(url: str) -> Engine:
    """An engine whose transactions begin where we say and are durable when they end."""
    engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"))
    if engine.dialect.name == "sqlite":
        _keep_private(url)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def name_of(engine: Engine) -> str:
    """What people call it: its file, or its URL without the password."""
    if engine.dialect.name == "sqlite":
        return engine.url.database or "in memory"
    return engine.url.render_as_string(hide_password=True)


@contextmanager
def in_words(doing: str, name: str = "") -> Iterator[None]:
    """Turn a database's failure into one sentence.

    Raises:
        BadRequest: If it is well, and cannot hold such values as it was given.
        Diverged: If it refuses rows that contradict what it holds.
        Unavailable: If the database fails otherwise.
    """
    what = f"The database {name} cannot be {doing}" if name else f"The database cannot be {doing}"
    try:
        yield
    except ImportError as error:
        raise Unavailable(
            f"{what}: the Python package {error.name} is missing.",
            hint=f"Run: pip install {error.name}",
        ) from error
    except DataError as error:
        # The values may be secret.
        raise BadRequest(
            f"{what} with such values.", hint="Ask for it in other words."
        ) from error.orig
    except (SQLAlchemyError, OSError) as error:
        said = str(getattr(error, "orig", None) or error).strip()
        for mark, words, hint in _PLAIN_WORDS:
            if mark in said.lower():
                raise Unavailable(f"{what}: {words}.", hint=hint) from error
        first = said.splitlines()[0] if said else type(error).__name__
        kind = Diverged if isinstance(error, IntegrityError) else Unavailable
        raise kind(f"{what}: {first}.") from error


def _keep_private(url: str) -> None:
    path = make_url(url).database
    if path and path != ":memory:":
        # SQLite would make it readable by others; its log and index files take over its mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        Path(path).chmod(0o600)


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    # Python's own begin would leave schema changes outside the transaction.
    connection.isolation_level = None
    for setting in _SETTINGS:
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
