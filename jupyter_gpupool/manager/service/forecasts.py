"""When each waiting claim will start: the pool played forward in a thread, kept for some seconds.

Apart from every pass, and only when somebody asks. With thousands of claims it may take a second
or two: whoever asks meanwhile waits a moment, and then gets what was foreseen before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from jupyter_gpupool.pool.ids import ClaimId
from jupyter_gpupool.scheduling.estimates import Estimate, estimates
from jupyter_gpupool.scheduling.pool_view import PoolView

from .books import Books
from .learning import Learning

_LOG = logging.getLogger(__name__)
_FRESH_FOR_S = 3.0
_REST = 10.0
"""How many times what a forecast took it is kept at least, so that it never fills a processor."""
_PATIENCE_S = 1.0
FREED_WITHIN_S = 60.0
"""How long devices taken for a claim need at most to be proven free, nine times in ten."""

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """When a claim is thought to start.

    Attributes:
        at: As likely sooner as later.
        by: Late: nine of ten come sooner.
        is_learned: It rests on how long past claims took.
    """

    at: datetime
    by: datetime
    is_learned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What was foreseen at a moment.

    Attributes:
        starts: Of the claims that waited, as far as they can be told.
        waited: All that waited then.
    """

    made_s: float = float("-inf")
    took_s: float = 0.0
    starts: Mapping[ClaimId, Start] = field(default_factory=dict)
    waited: frozenset[ClaimId] = frozenset()


class Forecasts:
    """The last forecast, made anew when somebody asks and it is old.

    Args:
        look: Looks at the books, as a pass would.
        learning: What is known of how long claims take.
        recall: Teaches it what ended before this manager started.
        monotonic: A clock in seconds.
    """

    def __init__(
        self,
        look: Callable[[], PoolView],
        learning: Learning,
        recall: Callable[[], Awaitable[None]],
        monotonic: Callable[[], float],
    ) -> None:
        self._look = look
        self._learning = learning
        self._recall = recall
        self._monotonic = monotonic
        self._forecast = Forecast()
        self._making: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._has_recalled = False

    def of(self, claim_id: ClaimId) -> Start | None:
        """When it will start, as last foreseen; None if that cannot be told."""
        return self._forecast.starts.get(claim_id)

    async def refresh(self, waiting: Iterable[ClaimId]) -> None:
        """Foresee anew if somebody waits, and what is kept is old or does not know of them."""
        asked = tuple(waiting)
        if asked and not self._is_fresh(asked):
            if self._making is None or self._making.done():
                self._making = asyncio.create_task(self._make(), name="gpupool-forecast")
            await asyncio.wait((self._making,), timeout=_PATIENCE_S)

    async def compute(self, work: Callable[[], _R]) -> _R:
        """Run something as heavy in a thread, one after the other; what was learned is there."""
        async with self._one_at_a_time:
            if not self._has_recalled:
                await self._recall()
                self._has_recalled = True
            return await asyncio.to_thread(work)

    async def close(self) -> None:
        """Wait for a forecast that is under way."""
        if self._making is not None:
            await asyncio.wait((self._making,))

    def _is_fresh(self, asked: Iterable[ClaimId]) -> bool:
        last, age_s = self._forecast, self._monotonic() - self._forecast.made_s
        knows_all = last.waited.issuperset(asked)
        return age_s < max(_FRESH_FOR_S if knows_all else 0.0, _REST * last.took_s)

    async def _make(self) -> None:
        began_s = self._monotonic()
        try:
            view = self._look()
            starts = await self.compute(lambda: _starts_of(self._learning.informed(view)))
        except Exception:  # noqa: BLE001 - an estimate is an extra: nobody's answer may fail with it
            _LOG.exception("Starts could not be foreseen")
            view, starts = None, {}
        now_s = self._monotonic()
        waited = () if view is None else (claim.id for claim in view.claims)
        self._forecast = Forecast(
            made_s=now_s, took_s=now_s - began_s, starts=starts, waited=frozenset(waited)
        )


def promised_start(books: Books, claim_id: ClaimId, now: datetime) -> Start | None:
    """When a claim starts for which devices are being taken: once the last grace is over."""
    record = books.claims.get(claim_id)
    if record is None or not record.promised:
        return None
    notices = (lease.notice for lease in books.noticed())
    due = [n.deadline for n in notices if n is not None and claim_id in n.claimants]
    at = max((now, *due))
    return Start(at=at, by=datetime.fromtimestamp(at.timestamp() + FREED_WITHIN_S, UTC))


def start_of(estimate: Estimate, *, is_learned: bool) -> Start | None:
    """An estimate on the calendar."""
    p50_s, p90_s = estimate.start_p50_s, estimate.start_p90_s
    if p50_s is None:
        return None
    late_s = p50_s if p90_s is None else p90_s
    at, by = (_moment(seconds) for seconds in (p50_s, late_s))
    return None if at is None or by is None else Start(at=at, by=by, is_learned=is_learned)


def rests_on_learning(view: PoolView) -> bool:
    """Whether what is expected of any claim that holds devices, or waits, was learned."""
    return any(claim.expected_at_most_s is not None for claim in view.claims)


def can_tell(view: PoolView) -> bool:
    """Whether of any claim that holds devices it is known, or learned, how long it goes on.

    Without that, an estimate would be made of nothing, and is not made.
    """
    holders = [claim for claim in view.claims if claim.held]
    return not holders or any(c.expected_s or c.time_limit_s for c in holders)


def _starts_of(view: PoolView) -> dict[ClaimId, Start]:
    if not can_tell(view):
        return {}
    is_learned = rests_on_learning(view)
    found = ((i, start_of(e, is_learned=is_learned)) for i, e in estimates(view).items())
    return {claim_id: start for claim_id, start in found if start is not None}


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError):
        return None  # beyond the calendar: nobody can tell
