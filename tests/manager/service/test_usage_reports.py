"""Reports on usage: made no oftener than is good for the pool, and large ones one by one."""

import asyncio
from datetime import UTC, datetime

from jupyter_gpupool.manager.service.usage_reports import UsageReports
from jupyter_gpupool.protocol.usage import UsageBy, UsageView, UsedView

NOW = datetime(2026, 12, 1, tzinfo=UTC)


class Made:
    """Makes reports, counts them and how many are under way, each taking so long."""

    def __init__(self, took_s: float = 0.0) -> None:
        self.times, self.mark, self.now_s = 0, 0, 100.0
        self.going, self.most_going, self._took_s = 0, 0, took_s

    async def report(self) -> UsageView:
        """One more."""
        self.times, self.going = self.times + 1, self.going + 1
        self.most_going = max(self.most_going, self.going)
        await asyncio.sleep(0)
        self.now_s, self.going = self.now_s + self._took_s, self.going - 1
        return UsageView(
            since=NOW,
            until=NOW,
            zone="UTC",
            by=(UsageBy.USER,),
            whole_pool=True,
            rows=(),
            total=UsedView(held=self.times),
        )

    def reports(self) -> UsageReports:
        """What is under test."""
        return UsageReports(lambda: self.mark, lambda: self.now_s)


async def test_the_same_is_made_once_while_nothing_happens():
    """However many ask, and at once; seconds later it is made anew."""
    made = Made()
    reports = made.reports()
    asked = [reports.of("all", made.report, is_large=True) for _ in range(20)]
    assert {report.total.held for report in await asyncio.gather(*asked)} == {1}
    made.now_s += 6
    await reports.of("all", made.report, is_large=True)
    assert made.times == 2


async def test_what_happens_is_told_at_once_unless_it_takes_long():
    """Then the last report stands for ten times as long."""
    quick, slow = Made(), Made(took_s=3.0)
    for made, times in ((quick, 2), (slow, 1)):
        reports = made.reports()
        await reports.of("all", made.report, is_large=True)
        made.mark += 1
        made.now_s += 25
        await reports.of("all", made.report, is_large=True)
        assert made.times == times


async def test_large_reports_are_made_one_by_one_and_hold_up_no_small_one():
    """Of the store's two readers one is left to everybody else."""
    large, small = Made(), Made()
    reports = large.reports()
    many = [reports.of(("all", n), large.report, is_large=True) for n in range(5)]
    own = [reports.of(("own", n), small.report, is_large=False) for n in range(5)]
    await asyncio.gather(*many, *own)
    assert (large.times, large.most_going) == (5, 1)
    assert (small.times, small.most_going) == (5, 5)


async def test_only_so_many_reports_are_kept():
    """Who asks for ever other things fills no memory."""
    made = Made()
    reports = made.reports()
    for number in range(200):
        await reports.of(number, made.report, is_large=False)
    await reports.of(199, made.report, is_large=False)
    assert made.times == 200
    await reports.of(0, made.report, is_large=False)
    assert made.times == 201
