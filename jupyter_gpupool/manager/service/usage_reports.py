"""Reports on usage, kept for a while: a year of a large pool takes seconds to add up.

Made when somebody asks, in a thread of the store's; however many ask, the pool spends a small part
of its time on them.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

from jupyter_gpupool.protocol.usage import UsageView

_FRESH_FOR_S = 5.0
"""Usage goes on while nothing happens, but a report has no use for seconds."""
_REST = 10
"""So many times longer than it took, so that nobody who asks all the time slows the pool down."""
_MOST_KEPT = 64


class UsageReports:
    """The last reports, each for one way of asking.

    Args:
        mark: Differs once something has happened.
        monotonic: A clock in seconds.
    """

    def __init__(self, mark: Callable[[], object], monotonic: Callable[[], float]) -> None:
        self._mark, self._monotonic = mark, monotonic
        self._kept: OrderedDict[Hashable, _Made] = OrderedDict()
        self._large_one = asyncio.Lock()

    async def of(
        self, asked: Hashable, make: Callable[[], Awaitable[UsageView]], *, is_large: bool
    ) -> UsageView:
        """The report on this; of large ones, one is made at a time."""
        async with self._large_one if is_large else contextlib.nullcontext():
            made = self._kept.get(asked)
            if made is None or not self._is_fresh(made):
                made = await self._make(make)
                self._kept[asked] = made
            self._kept.move_to_end(asked)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return made.report

    async def _make(self, make: Callable[[], Awaitable[UsageView]]) -> "_Made":
        mark, began_s = self._mark(), self._monotonic()
        report = await make()
        at_s = self._monotonic()
        return _Made(report=report, mark=mark, at_s=at_s, took_s=at_s - began_s)

    def _is_fresh(self, made: "_Made") -> bool:
        is_same = made.mark == self._mark()
        rest_s = max(_FRESH_FOR_S if is_same else 0.0, _REST * made.took_s)
        return self._monotonic() - made.at_s < rest_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    report: UsageView
    mark: object
    at_s: float
    took_s: float
