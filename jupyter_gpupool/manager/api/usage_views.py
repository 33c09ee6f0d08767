"""The report on usage as its caller may see it: pure."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from jupyter_gpupool.manager.service.used_days import UsedDay
from jupyter_gpupool.protocol.usage import UsageBy, UsageRowView, UsageView, UsedView
from jupyter_gpupool.scheduling.used_time import QUARTER_S, DeviceTime

_HOUR_S = 3600
_Key = tuple[str | None, str | None, date | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What is asked for.

    Attributes:
        days: The last so many, today included.
        shows: Whether the caller may see what this claim used.
        whole_pool: They may see everything.
    """

    days: int
    by: Collection[UsageBy]
    zone: ZoneInfo
    now: datetime
    shows: Callable[[UsedDay], bool]
    whole_pool: bool

    @property
    def since(self) -> datetime:
        """The first moment of the first day."""
        first = self.now.astimezone(self.zone).date() - timedelta(days=self.days - 1)
        return datetime.combine(first, time(), self.zone)


def usage_view(asking: Asking, used: Iterable[UsedDay]) -> UsageView:
    """The report, its rows in the order of what they are about."""
    total, rows = DeviceTime(), defaultdict[_Key, DeviceTime](DeviceTime)
    for key, amount in _amounts(asking, used):
        rows[key] += amount
        total += amount
    return UsageView(
        since=asking.since,
        until=asking.now,
        zone=asking.zone.key,
        by=tuple(by for by in UsageBy if by in asking.by),
        whole_pool=asking.whole_pool,
        rows=tuple(_row(key, rows[key]) for key in sorted(rows, key=_order)),
        total=UsedView(**_hours(total)),
    )


def _amounts(asking: Asking, used: Iterable[UsedDay]) -> Iterator[tuple[_Key, DeviceTime]]:
    since_s = asking.since.timestamp()
    for each in filter(asking.shows, used):
        user = each.owner if UsageBy.USER in asking.by else None
        queue = each.queue if UsageBy.QUEUE in asking.by else None
        for quarter, amount in each.quarters.items():
            begins_s = quarter * QUARTER_S
            if begins_s >= since_s:
                yield (user, queue, _day(asking, begins_s)), amount


def _day(asking: Asking, at_s: int) -> date | None:
    if UsageBy.DAY not in asking.by:
        return None
    return datetime.fromtimestamp(at_s, asking.zone).date()


def _row(key: _Key, amount: DeviceTime) -> UsageRowView:
    user, queue, day = key
    return UsageRowView(user=user, queue=queue, day=day, **_hours(amount))


def _hours(amount: DeviceTime) -> dict[str, float]:
    seconds = {
        "held": amount.held_s,
        "busy": amount.busy_s,
        "idle": amount.idle_s,
        "unknown": amount.unknown_s,
        "won_back": amount.won_s,
    }
    return {name: round(value / _HOUR_S, 4) for name, value in seconds.items()}


def _order(key: _Key) -> tuple[str, str, date]:
    user, queue, day = key
    return user or "", queue or "", day or date.min
