"""The store: what goes in comes out, and failures are one sentence."""

import sqlite3
from dataclasses import replace

import pytest

from jupyter_gpupool.manager.store.database import open_engine
from jupyter_gpupool.manager.store.migrate import HEAD, migrate, revision_of, upgrade
from jupyter_gpupool.manager.store.sealing import load_seal
from jupyter_gpupool.manager.store.store import Store
from jupyter_gpupool.pool.errors import Unavailable


async def test_everything_comes_back(site):
    """Claims with their secrets, leases, hosts, tokens, keys and events."""
    agent = await site.host()
    async with await site.client() as client:
        body = {"workers": {"min": 1, "max": 2}, "env": {"TOKEN": "s3cret"}, "name": "x"}
        await client.post("/api/v1/claims", json=body, headers={"Idempotency-Key": "k"})
    await site.come_up(agent)
    books, found = site.parts.service.books, site.parts.service.store.load()
    assert {r.claim.id: r for r in found.claims} == books.claims
    assert {lease.id: lease for lease in found.leases} == books.leases
    assert [replace(host, states=()) for host in books.hosts.values()] == list(found.hosts)
    assert {t.id: t for t in found.tokens} == books.tokens
    assert [r.key for r in found.once] == ["k"]
    assert [event.seq for event in found.events] == list(range(1, books.seq + 1))


async def test_database_holds_no_secret_in_the_clear(site):
    """Neither a claim's keys and variables nor a token; and nobody else may read the file."""
    await site.host()
    secret = await site.token("ann")
    async with site.anonymous({"Authorization": f"Bearer {secret}"}) as client:
        body = {"workers": {"min": 1, "max": 1}, "env": {"TOKEN": "s3cret-value"}}
        await client.post("/api/v1/claims", json=body)
    files = list(site.folder.glob("manager.sqlite*"))
    held = b"".join(file.read_bytes() for file in files)
    assert b"c-" in held
    assert not any(word in held for word in (b"s3cret-value", b"PRIVATE KEY", secret.encode()))
    assert {file.stat().st_mode & 0o077 for file in files} == {0}


def test_database_refuses_a_second_lease_of_a_device(tmp_path):
    """The last wall, whatever the code above does."""
    store = _store(tmp_path)
    store.close()
    row = "INSERT INTO leases VALUES (?, 'c', 'h', 'GPU-1', ?, '2026-01-01', NULL, '{}')"
    with sqlite3.connect(tmp_path / "manager.sqlite") as database:
        database.execute(row, ("l-0", "ended"))
        database.execute(row, ("l-1", "granted"))
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(row, ("l-2", "ending"))


def test_each_start_is_counted(tmp_path):
    """So that no generation is ever used twice."""
    boots = []
    for _ in range(3):
        store = _store(tmp_path)
        boots.append(store.load().boot)
        store.close()
    assert boots == [1, 2, 3]


def test_damaged_database_is_one_sentence(tmp_path):
    """It says what is wrong and what to do."""
    (tmp_path / "manager.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(Unavailable, match="its file is damaged"):
        _store(tmp_path)


async def test_readonly_database_is_one_sentence_and_heals(tmp_path):
    """Nothing is written, and the next write works once it may be written again."""
    store = _store(tmp_path)
    with sqlite3.connect(tmp_path / "manager.sqlite") as database:
        database.execute(
            "CREATE TRIGGER no BEFORE INSERT ON meta BEGIN SELECT RAISE(ABORT,"
            " 'attempt to write a readonly database'); END"
        )
    with pytest.raises(Unavailable, match="it may only be read"):
        await store.prove_writable()
    with sqlite3.connect(tmp_path / "manager.sqlite") as database:
        database.execute("DROP TRIGGER no")
    await store.prove_writable()
    store.close()


def test_newer_database_is_refused(tmp_path):
    """An older manager must not write what it does not understand."""
    _store(tmp_path).close()
    with sqlite3.connect(tmp_path / "manager.sqlite") as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Unavailable, match="newer than this manager knows"):
        _store(tmp_path)


def test_database_sealed_with_another_key_is_refused(tmp_path):
    """A restored database without its key file says which file is missing."""
    seal = load_seal(tmp_path / "secret-key")
    closed = seal.close("x")
    with pytest.raises(Unavailable, match="secret-key"):
        load_seal(tmp_path / "other-key").open(closed)


def test_key_that_others_may_read_is_refused(tmp_path):
    """The hint is the command to run."""
    load_seal(tmp_path / "secret-key")
    (tmp_path / "secret-key").chmod(0o644)
    with pytest.raises(Unavailable, match="chmod 600"):
        load_seal(tmp_path / "secret-key")


def test_first_revision_is_brought_to_the_newest(tmp_path):
    """A database of the first release ends where a new one begins."""
    old, new = (open_engine(f"sqlite:///{tmp_path / name}") for name in ("old", "new"))
    with old.begin() as connection:
        upgrade(connection, "0001")
    migrate(old)
    migrate(new)
    with old.connect() as connection, new.connect() as other:
        assert revision_of(connection) == HEAD
        assert _schema(connection) == _schema(other)
    old.dispose()
    new.dispose()


def test_tables_are_what_the_migrations_make(tmp_path):
    """`tables.py` and the newest revision describe the same database."""
    from alembic.autogenerate import compare_metadata  # noqa: PLC0415 - only here
    from alembic.migration import MigrationContext  # noqa: PLC0415 - only here

    from jupyter_gpupool.manager.store.tables import METADATA  # noqa: PLC0415 - with the above

    engine = open_engine(f"sqlite:///{tmp_path / 'db'}")
    migrate(engine)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    engine.dispose()


def _store(folder) -> Store:
    return Store(f"sqlite:///{folder / 'manager.sqlite'}", load_seal(folder / "secret-key"))


def _schema(connection):
    return sorted(connection.exec_driver_sql("SELECT name, sql FROM sqlite_master").fetchall())
