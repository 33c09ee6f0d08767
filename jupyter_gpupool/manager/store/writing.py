"""Writing one batch of changes in one transaction."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Column, Connection, Table, bindparam, delete, func, insert, select, update

from . import rows
from .changes import Changes
from .sealing import Seal
from .tables import (
    CLAIMS,
    EVENTS,
    HOST_TOKENS,
    HOSTS,
    LEASES,
    ONCE,
    POLICIES,
    RECORDED,
    RESERVATIONS,
    TOKENS,
    USAGE,
    USERS,
    WATCHES,
)


def write(connection: Connection, changes: Changes, seal: Seal) -> None:
    """Write everything; the caller's transaction makes it whole."""
    _insert(connection, CLAIMS, (rows.claim_row(x, seal) for x in changes.new_claims))
    _update(connection, CLAIMS, (rows.claim_row(x, seal) for x in changes.claims))
    _update(connection, LEASES, rows.lease_rows(changes.leases))
    _insert(connection, LEASES, rows.lease_rows(changes.new_leases))
    _insert(connection, HOSTS, map(rows.host_row, changes.new_hosts))
    _update(connection, HOSTS, map(rows.host_row, changes.hosts))
    _delete(connection, HOSTS.c.id, changes.gone_hosts)
    _insert(connection, HOST_TOKENS, map(rows.host_token_row, changes.new_host_tokens))
    _update(connection, HOST_TOKENS, map(rows.host_token_row, changes.host_tokens))
    _delete(connection, HOST_TOKENS.c.host_id, changes.gone_host_tokens)
    _insert(connection, USERS, map(rows.user_row, changes.new_users))
    _update(connection, USERS, map(rows.user_row, changes.users))
    _delete(connection, USERS.c.name, changes.gone_users)
    _insert(connection, TOKENS, map(rows.token_row, changes.new_tokens))
    _delete(connection, TOKENS.c.id, changes.gone_tokens)
    _insert(connection, ONCE, map(rows.once_row, changes.new_once))
    _update(connection, ONCE, map(rows.once_row, changes.once))
    _insert(connection, USAGE, map(rows.usage_row, changes.new_usage))
    _update(connection, USAGE, map(rows.usage_row, changes.usage))
    _delete(connection, USAGE.c.leaf, changes.gone_usage)
    _insert(connection, RESERVATIONS, map(rows.reservation_row, changes.new_reservations))
    _delete(connection, RESERVATIONS.c.id, changes.gone_reservations)
    _insert(connection, WATCHES, map(rows.watch_row, changes.new_watches))
    _update(connection, WATCHES, map(rows.watch_row, changes.watches))
    _delete(connection, WATCHES.c.claim_id, changes.gone_watches)
    _insert(connection, RECORDED, map(rows.recorded_row, changes.new_recorded))
    _insert(connection, POLICIES, map(rows.policy_row, changes.new_policies))
    _insert(connection, EVENTS, map(rows.event_row, changes.events))


def prune(
    connection: Connection, before: datetime, keys_before: datetime, recorded_before: datetime
) -> None:
    """Forget what ended, happened, was answered or was seen too long ago.

    The last event stays, whatever its age: it holds the number the next one follows.
    """
    ended = select(CLAIMS.c.id).where(CLAIMS.c.ended_at < before)
    connection.execute(delete(LEASES).where(LEASES.c.claim_id.in_(ended)))
    connection.execute(delete(CLAIMS).where(CLAIMS.c.ended_at < before))
    last = select(func.max(EVENTS.c.seq)).scalar_subquery()
    connection.execute(delete(EVENTS).where(EVENTS.c.at < before, EVENTS.c.seq < last))
    connection.execute(delete(ONCE).where(ONCE.c.at < keys_before))
    connection.execute(delete(RECORDED).where(RECORDED.c.until < recorded_before))


def _delete(connection: Connection, key: Column[str], gone: Sequence[str]) -> None:
    if gone:
        this = [{"gone_key": one} for one in gone]
        connection.execute(delete(key.table).where(key == bindparam("gone_key")), this)


def _insert(connection: Connection, table: Table, made: Iterable[rows.Row]) -> None:
    values = [dict(row) for row in made]
    if values:
        connection.execute(insert(table), values)


def _update(connection: Connection, table: Table, made: Iterable[rows.Row]) -> None:
    keys = [column.name for column in table.primary_key]
    values = [{f"old_{k}" if k in keys else k: v for k, v in row.items()} for row in made]
    if values:
        this = [table.c[key] == bindparam(f"old_{key}") for key in keys]
        connection.execute(update(table).where(*this), values)
