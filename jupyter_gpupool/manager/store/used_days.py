"""Claims' days in the database: summed up once they are over, read for the report on usage.

Days that are not summed up yet are worked out anew of leases, records and events whenever somebody
asks; those that are outlive the claims.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
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
from jupyter_gpupool.scheduling.used_time import MOST_WON_S, DeviceTime

from . import rows
from .tables import CLAIM_DAYS, CLAIMS, EVENTS, LEASES, META, RECORDED

SETTLES_S = 2 * 3600.0
"""So long after its end a day is summed up: by then what was seen in it is written down."""
KEPT_DAYS = 400
_SUMMED = "usage_summed"
_CLAIM = TypeAdapter(Claim)
_QUARTERS = TypeAdapter(dict[int, DeviceTime])


def sum_up(connection: Connection, now: datetime) -> None:
    """Write down the days that are over, and forget those that are too old."""
    begin = _summed_until(connection)
    end = int((now.timestamp() - SETTLES_S) // DAY_S)
    if begin is None:
        connection.execute(insert(META).values(name=_SUMMED, value="0"))
    if begin is not None and begin >= end:
        return
    begin = _first_day(connection, end) if begin is None else begin
    kept = _kept(connection, begin, ())
    made = [_row(each) for each in used_days(kept, begin, float(end * DAY_S))]
    if made:
        connection.execute(insert(CLAIM_DAYS), made)
    connection.execute(update(META).where(META.c.name == _SUMMED).values(value=str(end)))
    connection.execute(delete(CLAIM_DAYS).where(CLAIM_DAYS.c.day < end - KEPT_DAYS))


def read_used(
    connection: Connection, since_day: int, now: datetime, open_records: Sequence[RecordedUse]
) -> list[UsedDay]:
    """What each claim held and used since the beginning of a day (UTC).

    `open_records` is what was seen and is not written down yet.
    """
    begin = max(since_day, _summed_until(connection) or 0)
    query = select(CLAIM_DAYS).where(CLAIM_DAYS.c.day >= since_day, CLAIM_DAYS.c.day < begin)
    summed = [_read(row) for row in connection.execute(query).mappings()]
    kept = _kept(connection, begin, open_records)
    return [*summed, *used_days(kept, begin, now.timestamp())]


def _kept(connection: Connection, begin: int, open_records: Sequence[RecordedUse]) -> Kept:
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
