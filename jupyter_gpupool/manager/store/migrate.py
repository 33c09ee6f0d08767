"""Bringing a database to the newest revision; Alembic is only imported when there is work to do.

Called once at start, before anything else reads the database.
"""

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from jupyter_gpupool.pool.errors import Unavailable

HEAD = "0010"
"""The newest revision in `migrations/versions`; a test compares the two."""


def migrate(engine: Engine) -> None:
    """Apply what is missing, all of it or nothing.

    Raises:
        Unavailable: If a newer version of the manager has written the database.
    """
    with engine.begin() as connection:
        found = revision_of(connection)
        if found == HEAD:
            return
        if found is not None and found > HEAD:
            raise Unavailable(
                f"The database is of revision {found}, newer than this manager knows ({HEAD}).",
                hint="Start the newer version of jupyter_gpupool.",
            )
        upgrade(connection, HEAD)


def revision_of(connection: Connection) -> str | None:
    """The revision a database is of, or None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def upgrade(connection: Connection, revision: str) -> None:
    """Apply the revisions up to this one within the connection's transaction."""
    from alembic import command  # noqa: PLC0415 - 10 MiB that most starts do without
    from alembic.config import Config  # noqa: PLC0415 - as above

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
