"""The store: what goes in comes out, and failures are one sentence."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from jupyter_gpupool.manager.service.records import Moving, PolicyRevision, UserRecord
from jupyter_gpupool.manager.store.changes import Changes
from jupyter_gpupool.manager.store.database import open_engine
from jupyter_gpupool.manager.store.migrate import HEAD, migrate, revision_of, upgrade
from jupyter_gpupool.manager.store.reading import read_everything, read_leases
from jupyter_gpupool.manager.store.sealing import load_seal
from jupyter_gpupool.manager.store.stamp import Diverged
from jupyter_gpupool.manager.store.store import Store
from jupyter_gpupool.manager.store.writing import write
from jupyter_gpupool.pool.errors import Unavailable
from jupyter_gpupool.pool.ids import ClaimId, DeviceUuid, HostId, LeaseId
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.scheduling.shape import HeldWorker

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A database whose changes are kept and which is closed, which sqlite3 alone does not do."""
    with closing(sqlite3.connect(path)) as database, database:
        yield database


_LEASE_ROW = "INSERT INTO leases VALUES (?, 0, 'c', 'h', ?, ?, ?, '2026-01-01', NULL, '{}')"


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
    assert {used.leaf: used for used in found.usage} == books.usage
    assert {t.id: t for t in found.tokens} == books.tokens
    assert [r.key for r in found.once] == ["k"]
    assert [event.seq for event in found.events] == list(range(1, books.seq + 1))


async def test_what_a_claim_is_on_its_way_to_comes_back(tmp_path, site):
    """With for whom it moves, when it last stayed, and what it has had so far."""
    async with await site.client() as client:
        await client.post("/api/v1/claims", json={"workers": {"min": 1, "max": 1}})
    [record] = site.parts.service.books.claims.values()
    moving = replace(
        record,
        promised=(HeldWorker(HostId("a"), (DeviceUuid("d"),)),),
        moving=Moving(claimant=ClaimId("c"), reason="Moved."),
        stayed_at=NOW,
        served_s=1.5,
    )
    (tmp_path / "other").mkdir()
    store = _store(tmp_path / "other")
    store.load()
    await store.commit(Changes(new_claims=(moving,)))
    assert store.load().claims == (moving,)
    store.close()


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
    _store(tmp_path).close()
    with _opened(tmp_path / "manager.sqlite") as database:
        database.execute(_LEASE_ROW, ("l-0", "GPU-1", 1000, "ended"))
        database.execute(_LEASE_ROW, ("l-1", "GPU-1", 1000, "granted"))
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(_LEASE_ROW, ("l-2", "GPU-1", 1, "ending"))


@pytest.mark.parametrize(
    "beyond",
    [
        "INSERT INTO leases VALUES ('l', 0, 'c', 'h', 'GPU-1', 401, 'granted', '', NULL, '{}')",
        "UPDATE leases SET share = 601 WHERE id = 'l-2'",
        "UPDATE leases SET device = 'GPU-1' WHERE id = 'l-3'",
        "UPDATE leases SET phase = 'running' WHERE id = 'l-0'",
        "UPDATE leases SET share = 0 WHERE id = 'l-1'",
    ],
)
def test_database_refuses_shares_of_a_device_beyond_one(tmp_path, beyond):
    """However a row comes to it: written, grown, moved, or back from its end."""
    _store(tmp_path).close()
    with _opened(tmp_path / "manager.sqlite") as database:
        for lease, device, share, phase in (
            ("l-0", "GPU-1", 500, "ended"),
            ("l-1", "GPU-1", 400, "granted"),
            ("l-2", "GPU-1", 200, "running"),
            ("l-3", "GPU-2", 1000, "running"),
        ):
            database.execute(_LEASE_ROW, (lease, device, share, phase))
        database.execute(_LEASE_ROW, ("l-4", "GPU-1", 400, "ending"))
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(beyond)


def test_lease_of_several_devices_comes_back_as_one(tmp_path):
    """It has a row for each of its devices, and each of them is held."""
    engine = open_engine(f"sqlite:///{tmp_path / 'db'}")
    migrate(engine)
    lease = Lease(
        id=LeaseId("l-1"),
        claim_id=ClaimId("c-1"),
        host_id=HostId("h-1"),
        device=DeviceUuid("GPU-1"),
        further=(DeviceUuid("GPU-2"), DeviceUuid("GPU-3")),
        phase=LeasePhase.GRANTED,
        granted_at=NOW,
        phase_since=NOW,
    )
    seal = load_seal(tmp_path / "secret-key")
    with engine.begin() as connection:
        write(connection, Changes(new_leases=(lease,)), seal)
        assert read_everything(connection, seal).leases == (lease,)
        ended = lease.moved(LeasePhase.ENDED, "", NOW)
        write(connection, Changes(leases=(ended,)), seal)
        assert read_everything(connection, seal).leases == ()
        assert read_leases(connection, lease.claim_id) == [ended]
    engine.dispose()


def test_leases_of_an_older_revision_stay_whole_devices(tmp_path):
    """Their bodies say nothing of shares, and what they hold is still theirs alone."""
    engine = open_engine(f"sqlite:///{tmp_path / 'db'}")
    body = (
        '{"id":"l-1","claim_id":"c","host_id":"h","device":"GPU-1","phase":"running",'
        '"granted_at":"2026-01-01T00:00:00Z","phase_since":"2026-01-01T00:00:00Z"}'
    )
    row = "INSERT INTO leases VALUES ('{}', 'c', 'h', 'GPU-1', '{}', '2026-01-01', NULL, ?)"
    with engine.begin() as connection:
        upgrade(connection, "0005")
        connection.exec_driver_sql(row.format("l-1", "running"), (body,))
        connection.exec_driver_sql(row.format("l-0", "ended"), (body.replace("l-1", "l-0"),))
    migrate(engine)
    with engine.begin() as connection:
        [lease] = read_everything(connection, load_seal(tmp_path / "secret-key")).leases
        assert (lease.devices, lease.thousandths) == (("GPU-1",), 1000)
        assert len(read_leases(connection, ClaimId("c"))) == 2
        with pytest.raises(IntegrityError):
            connection.exec_driver_sql(_LEASE_ROW, ("l-2", "GPU-1", 1, "granted"))
    engine.dispose()


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
    with _opened(tmp_path / "manager.sqlite") as database:
        database.execute(
            "CREATE TRIGGER no BEFORE INSERT ON meta BEGIN SELECT RAISE(ABORT,"
            " 'attempt to write a readonly database'); END"
        )
    with pytest.raises(Unavailable, match="it may only be read"):
        await store.prove_writable()
    with _opened(tmp_path / "manager.sqlite") as database:
        database.execute("DROP TRIGGER no")
    await store.prove_writable()
    store.close()


def test_newer_database_is_refused(tmp_path):
    """An older manager must not write what it does not understand."""
    _store(tmp_path).close()
    with _opened(tmp_path / "manager.sqlite") as database:
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


def test_second_manager_on_a_database_is_refused(tmp_path):
    """Whatever state folder it has: one sentence that names the database."""
    first = _store(tmp_path)
    with pytest.raises(Unavailable, match=r"Another manager uses the database .*manager\.sqlite"):
        _store(tmp_path)
    first.close()
    _store(tmp_path).close()


async def test_store_tells_whether_a_failed_commit_came_through(tmp_path):
    """By the stamp that is part of the transaction."""
    store = _store(tmp_path)
    store.load()
    assert not await store.settle()
    before = store._stamp
    await store.commit(Changes(new_users=(UserRecord(name="ann"),)))
    store._stamp = before  # as if the answer had been lost
    assert await store.settle()
    await store.commit(Changes(new_users=(UserRecord(name="bob"),)))
    assert {user.name for user in store.load().users} == {"ann", "bob"}
    store.close()


async def test_database_that_another_manager_has_written_is_left_alone(tmp_path):
    """Should two ever run, only the later one's transactions get through."""
    store = _store(tmp_path)
    store.load()
    with _opened(tmp_path / "manager.sqlite") as database:
        database.execute("UPDATE meta SET value = '2.0' WHERE name = 'stamp'")
    with pytest.raises(Diverged):
        await store.commit(Changes(new_users=(UserRecord(name="ann"),)))
    with pytest.raises(Diverged):
        await store.settle()
    store.close()


async def test_rows_that_contradict_the_database_are_no_passing_failure(tmp_path):
    """Memory is wrong then: only a new start helps."""
    store = _store(tmp_path)
    store.load()
    changes = Changes(new_users=(UserRecord(name="ann"),))
    await store.commit(changes)
    with pytest.raises(Diverged):
        await store.commit(changes)
    store.close()


def test_first_start_that_died_can_be_repeated(tmp_path):
    """An empty key beside no database is none; beside one it is missing."""
    (tmp_path / "secret-key").touch(mode=0o600)
    assert load_seal(tmp_path / "secret-key").open
    (tmp_path / "secret-key").write_bytes(b"")
    (tmp_path / "manager.sqlite").touch()
    with pytest.raises(Unavailable, match="holds no key"):
        load_seal(tmp_path / "secret-key")


def test_missing_driver_is_one_sentence(tmp_path):
    """The package to install, not a traceback."""
    with pytest.raises(Unavailable, match="the Python package psycopg is missing"):
        Store("postgresql+psycopg://u:secret@h/db", load_seal(tmp_path / "secret-key"))


def test_claims_of_the_first_revision_keep_their_os_user(tmp_path):
    """The one that was mapped, else the one of the owner's name; none before its first grant."""
    engine = open_engine(f"sqlite:///{tmp_path / 'db'}")
    row = (
        "INSERT INTO claims VALUES ('{}', '{}', 'running', '2026-01-01', NULL, {}, '', NULL, NULL)"
    )
    with engine.begin() as connection:
        upgrade(connection, "0001")
        connection.exec_driver_sql("INSERT INTO users VALUES ('bob', 'robert')")
        for claim, owner, start in (("1", "ann", 1), ("2", "bob", 1), ("3", "ann", 0)):
            connection.exec_driver_sql(row.format(claim, owner, start))
    migrate(engine)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT os_user FROM claims ORDER BY id").scalars()
        assert list(found) == ["ann", "robert", None]
    engine.dispose()


async def test_policies_of_an_older_database_stay_and_new_ones_say_why(tmp_path):
    """Nobody said why then; the newest comes first, and only so many."""
    engine = open_engine(f"sqlite:///{tmp_path / 'manager.sqlite'}")
    with engine.begin() as connection:
        upgrade(connection, "0004")
        connection.exec_driver_sql("INSERT INTO policies VALUES (1, '2026-01-01', 'ann', 'x = 1')")
    engine.dispose()
    store, now = _store(tmp_path), datetime(2026, 1, 2, tzinfo=UTC)
    store.load()
    back = PolicyRevision(revision=2, at=now, by="bob", source="x", comment="no", restores=1)
    await store.commit(Changes(new_policies=(back,)))
    newest, old = await store.policies(before=None, limit=9)
    assert (newest, old.comment, old.restores) == (back, "", None)
    assert (old.by, old.source, old.at) == ("ann", "x = 1", datetime(2026, 1, 1, tzinfo=UTC))
    assert await store.policies(before=2, limit=9) == [old] == [await store.policy(1)]
    assert await store.policies(before=None, limit=1) == [newest]
    assert await store.policy(3) is None
    store.close()


def _store(folder) -> Store:
    return Store(f"sqlite:///{folder / 'manager.sqlite'}", load_seal(folder / "secret-key"))


def _schema(connection):
    return sorted(connection.exec_driver_sql("SELECT name, sql FROM sqlite_master").fetchall())
