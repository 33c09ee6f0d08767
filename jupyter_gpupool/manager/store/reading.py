"""Reading: all that lives, at start; what is no longer in memory, when somebody asks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, insert, or_, select, update

from jupyter_gpupool.manager.auth.tokens import TokenRecord
from jupyter_gpupool.manager.service.records import (
    ClaimRecord,
    HostToken,
    OnceRecord,
    PolicyRevision,
    RecordedUse,
    UsageRecord,
    UserRecord,
    WatchRecord,
)
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.event import Event
from jupyter_gpupool.pool.host import Host
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.lease import Lease, LeasePhase
from jupyter_gpupool.pool.reservation import Reservation

from . import rows
from .sealing import Seal
from .tables import (
    CLAIMS,
    EVENTS,
    HOST_TOKENS,
    HOSTS,
    LEASES,
    META,
    ONCE,
    POLICIES,
    RECORDED,
    RESERVATIONS,
    TOKENS,
    USAGE,
    USERS,
    WATCHES,
)

_LAST_EVENTS = 2000
_LAST_POLICIES = 50
"""The first is in force, unless a later version of the manager refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All that lives, as it was last committed.

    Attributes:
        policies: The revisions applied last, newest first.
        events: The last ones, oldest first.
        boot: How often a manager has started on this database, this time included.
    """

    claims: tuple[ClaimRecord, ...]
    leases: tuple[Lease, ...]
    hosts: tuple[Host, ...]
    host_tokens: tuple[HostToken, ...]
    tokens: tuple[TokenRecord, ...]
    users: tuple[UserRecord, ...]
    once: tuple[OnceRecord, ...]
    events: tuple[Event, ...]
    boot: int
    usage: tuple[UsageRecord, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    policies: tuple[PolicyRevision, ...] = ()
    watches: tuple[WatchRecord, ...] = ()


def read_everything(connection: Connection, seal: Seal) -> Everything:
    """Read what lives, and count this start."""
    live = select(CLAIMS).where(CLAIMS.c.phase != Phase.ENDED.value).order_by(CLAIMS.c.created_at)
    held = _leases().where(LEASES.c.phase != LeasePhase.ENDED.value)
    last = select(EVENTS).order_by(EVENTS.c.seq.desc()).limit(_LAST_EVENTS)
    fetch = connection.execute
    return Everything(
        claims=tuple(rows.read_claim(row, seal) for row in fetch(live).mappings()),
        leases=tuple(map(rows.read_lease, fetch(held.order_by(LEASES.c.granted_at)).mappings())),
        hosts=tuple(map(rows.read_host, fetch(select(HOSTS)).mappings())),
        host_tokens=tuple(map(rows.read_host_token, fetch(select(HOST_TOKENS)).mappings())),
        tokens=tuple(map(rows.read_token, fetch(select(TOKENS)).mappings())),
        users=tuple(map(rows.read_user, fetch(select(USERS)).mappings())),
        once=tuple(map(rows.read_once, fetch(select(ONCE)).mappings())),
        usage=tuple(map(rows.read_usage, fetch(select(USAGE)).mappings())),
        reservations=tuple(map(rows.read_reservation, fetch(select(RESERVATIONS)).mappings())),
        policies=tuple(read_policies(connection, before=None, limit=_LAST_POLICIES)),
        watches=tuple(map(rows.read_watch, fetch(select(WATCHES)).mappings())),
        events=tuple(map(rows.read_event, fetch(last).mappings()))[::-1],
        boot=_count_boot(connection),
    )


def read_claim(connection: Connection, claim_id: ClaimId, seal: Seal) -> ClaimRecord | None:
    """A claim, whether it lives or has ended."""
    row = connection.execute(select(CLAIMS).where(CLAIMS.c.id == claim_id)).mappings().first()
    return None if row is None else rows.read_claim(row, seal)


def read_leases(connection: Connection, claim_id: ClaimId) -> list[Lease]:
    """The leases of a claim, those that ended too, oldest first."""
    query = _leases().where(LEASES.c.claim_id == claim_id)
    found = connection.execute(query.order_by(LEASES.c.granted_at, LEASES.c.id))
    return list(map(rows.read_lease, found.mappings()))


def read_ended(
    connection: Connection, owner: UserName | None, limit: int, seal: Seal
) -> list[ClaimRecord]:
    """The claims that ended last, youngest first; of one owner, or of all."""
    query = select(CLAIMS).where(CLAIMS.c.phase == Phase.ENDED.value)
    if owner is not None:
        query = query.where(CLAIMS.c.owner == owner)
    found = connection.execute(query.order_by(CLAIMS.c.created_at.desc()).limit(limit))
    return [rows.read_claim(row, seal) for row in found.mappings()]


def read_events(
    connection: Connection,
    *,
    after: int,
    owner: UserName | None,
    claim_id: ClaimId | None,
    limit: int,
) -> list[Event]:
    """Events after a position, oldest first; `owner` sees theirs and everybody's, None sees all."""
    query = select(EVENTS).where(EVENTS.c.seq > after)
    if owner is not None:
        query = query.where(or_(EVENTS.c.owner == owner, EVENTS.c.owner.is_(None)))
    if claim_id is not None:
        query = query.where(EVENTS.c.claim_id == claim_id)
    found = connection.execute(query.order_by(EVENTS.c.seq).limit(limit))
    return [rows.read_event(row) for row in found.mappings()]


def read_policies(connection: Connection, before: int | None, limit: int) -> list[PolicyRevision]:
    """The revisions of the policy, newest first; only those before one, if it is named."""
    query = select(POLICIES)
    if before is not None:
        query = query.where(POLICIES.c.revision < before)
    found = connection.execute(query.order_by(POLICIES.c.revision.desc()).limit(limit))
    return [rows.read_policy(row) for row in found.mappings()]


def read_policy(connection: Connection, revision: int) -> PolicyRevision | None:
    """One revision of the policy."""
    query = select(POLICIES).where(POLICIES.c.revision == revision)
    row = connection.execute(query).mappings().first()
    return None if row is None else rows.read_policy(row)


def read_recorded(connection: Connection, since: datetime) -> list[RecordedUse]:
    """What was seen of claims since a moment, claim by claim, oldest first."""
    query = select(RECORDED).where(RECORDED.c.until >= since)
    found = connection.execute(query.order_by(RECORDED.c.claim_id, RECORDED.c.id))
    return [rows.read_recorded(row) for row in found.mappings()]


def oldest_event(connection: Connection) -> int:
    """The position of the oldest event still kept; 0 if there is none."""
    return connection.execute(select(func.min(EVENTS.c.seq))).scalar() or 0


def _leases() -> Select[Any]:
    # The rows of its further devices hold nothing more.
    return select(LEASES).where(LEASES.c.position == 0)


def _count_boot(connection: Connection) -> int:
    found = connection.execute(select(META.c.value).where(META.c.name == "boot")).scalar()
    boot = int(found or 0) + 1
    if found is None:
        connection.execute(insert(META).values(name="boot", value=str(boot)))
    else:
        connection.execute(update(META).where(META.c.name == "boot").values(value=str(boot)))
    return boot
