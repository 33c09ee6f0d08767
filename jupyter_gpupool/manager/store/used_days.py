"""Claims' days in the database: summed up once they are over, read for the report on usage.

Days that are not summed up yet are worked out anew of leases, records and events whenever somebody
asks; those that are outlive the claims. Summing up reads and works out one day at a time beside the
writer, which only writes down what came of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, delete, func, insert, or_, select, update

from jupyter_gpupool.manager.service.records import RecordedUse
from jupyter_gpupool.manager.service.used_days import (
    DAY_S,
    TELLING,
    Kept,
    UsedDay,
    used_days,
)
from jupyter_gpupool.pool.claim import Claim
from jupyter_gpupool.pool.ids import ClaimId, UserName
from jupyter_gpupool.pool.signals import LONGEST_WINDOW_MS
from jupyter_gpupool.scheduling.used_time import MOST_WON_S, DeviceTime

from . import rows
from .tables import CLAIM_DAYS, CLAIMS, EVENTS, LEASES, META, RECORDED

SETTLES_S = 2 * 3600.0
"""So long after its end a day is summed up: by then what was seen in it is written down."""
KEPT_DAYS = 400
_SUMMED = "usage_summed"
_LONGEST = timedelta(milliseconds=LONGEST_WINDOW_MS)
_CLAIM = TypeAdapter(Claim)
_QUARTERS = TypeAdapter(dict[int, DeviceTime])


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedDay:
    """One day that is over, ready to be written down.

    Attributes:
        before: The first day that was not summed up when it was read; None before the first time.
        until: The first day that will not be.
    """

    before: int | None
    until: int
    rows: Sequence[Mapping[str, Any]]


def next_summed(connection: Connection, now: datetime) -> SummedDay | None:
    """The first day that is over and not summed up yet; None if there is none."""
    before = _summed_until(connection)
    end = int((now.timestamp() - SETTLES_S) // DAY_S)
    day = _first_day(connection, end) if before is None else before
    if day >= end:
        return None if before is not None else SummedDay(before=None, until=end, rows=())
    kept = _kept(connection, day, (), until=day + 1)
    made = [_row(each) for each in used_days(kept, day, float((day + 1) * DAY_S))]
    return SummedDay(before=before, until=day + 1, rows=made)


def keep_summed(connection: Connection, summed: SummedDay) -> None:
    """Write a day down, unless somebody has done so meanwhile, and forget what is too old."""
    if _summed_until(connection) != summed.before:
        return
    value = str(summed.until)
    if summed.before is None:
        connection.execute(insert(META).values(name=_SUMMED, value=value))
    else:
        connection.execute(update(META).where(META.c.name == _SUMMED).values(value=value))
    if summed.rows:
        connection.execute(insert(CLAIM_DAYS), summed.rows)
    connection.execute(delete(CLAIM_DAYS).where(CLAIM_DAYS.c.day < summed.until - KEPT_DAYS))


def read_used(
    connection: Connection,
    since_day: int,
    now: datetime,
    open_records: Sequence[RecordedUse],
    owner: UserName | None = None,
) -> Iterator[UsedDay]:
    """What each claim held and used since the beginning of a day (UTC).

    `open_records` is what was seen and is not written down yet; with an owner, theirs alone counts.
    """
    begin = max(since_day, _summed_until(connection) or 0)
    query = select(CLAIM_DAYS).where(CLAIM_DAYS.c.day >= since_day, CLAIM_DAYS.c.day < begin)
    if owner is not None:
        query = query.where(CLAIM_DAYS.c.owner == owner)
    # One by one: a year of a large pool would fill the memory.
    yield from map(_read, connection.execute(query).mappings())
    kept = _kept(connection, begin, open_records, owner=owner)
    yield from used_days(kept, begin, now.timestamp())


def _kept(
    connection: Connection,
    begin: int,
    open_records: Sequence[RecordedUse],
    *,
    until: int | None = None,
    owner: UserName | None = None,
) -> Kept:
    """What tells of the days from `begin` on, and before `until`; of one owner, if one is named."""
    since = datetime.fromtimestamp(begin * DAY_S, UTC)
    # What was taken shortly before goes on being won.
    before = datetime.fromtimestamp(max(0.0, begin * DAY_S - MOST_WON_S), UTC)
    fetch = connection.execute
    claims = select(CLAIMS.c.body).where(
        or_(CLAIMS.c.ended_at.is_(None), CLAIMS.c.ended_at >= before)
    )
    leases = select(LEASES).where(
        LEASES.c.position == 0, or_(LEASES.c.ended_at.is_(None), LEASES.c.ended_at >= before)
    )
    recorded = select(RECORDED).where(RECORDED.c.until >= since).order_by(RECORDED.c.id)
    kinds = [kind.value for kind in TELLING]
    events = select(EVENTS).where(EVENTS.c.at >= before, EVENTS.c.kind.in_(kinds))
    if until is not None:
        end = datetime.fromtimestamp(until * DAY_S, UTC)
        claims = claims.where(CLAIMS.c.created_at < end)
        leases = leases.where(LEASES.c.granted_at < end)
        # A record is told by its end, and begins so much earlier at most.
        recorded = recorded.where(RECORDED.c.until < end + _LONGEST)
        events = events.where(EVENTS.c.at < end)
    if owner is not None:
        theirs = select(CLAIMS.c.id).where(CLAIMS.c.owner == owner)
        claims = claims.where(CLAIMS.c.owner == owner)
        leases = leases.where(LEASES.c.claim_id.in_(theirs))
        recorded = recorded.where(RECORDED.c.claim_id.in_(theirs))
        events = events.where(EVENTS.c.claim_id.in_(theirs))
    seen = [*map(rows.read_recorded, fetch(recorded).mappings()), *open_records]
    return Kept(
        claims=[_CLAIM.validate_json(body) for (body,) in fetch(claims)],
        leases=[rows.read_lease(row) for row in fetch(leases).mappings()],
        samples=[(each.claim_id, each.recorded.sample) for each in seen],
        events=[rows.read_event(row) for row in fetch(events).mappings()],
    )


def _summed_until(connection: Connection) -> int | None:
    """The first day that is not summed up; None before the first time."""
    found = connection.execute(select(META.c.value).where(META.c.name == _SUMMED)).scalar()
    return None if found is None else int(found)


def _first_day(connection: Connection, end: int) -> int:
    first: datetime | None = connection.execute(select(func.min(LEASES.c.granted_at))).scalar()
    if first is None:
        return end
    aware = first.replace(tzinfo=UTC) if first.tzinfo is None else first
    return min(end, int(aware.timestamp() // DAY_S))


def _row(used: UsedDay) -> Mapping[str, Any]:
    return {
        "claim_id": used.claim_id,
        "day": used.day,
        "owner": used.owner,
        "queue": used.queue,
        "body": _QUARTERS.dump_json(dict(used.quarters)).decode(),
    }


def _read(row: Any) -> UsedDay:
    return UsedDay(
        claim_id=ClaimId(row["claim_id"]),
        owner=UserName(row["owner"]),
        queue=row["queue"],
        day=row["day"],
        quarters=_QUARTERS.validate_json(row["body"]),
    )
