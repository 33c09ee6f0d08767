"""How long a claim will take: what its user says, else what past claims like it took.

Learned as quantiles of those that have ended by the moment of asking, never of later ones: of the
same user, queue and shape; if there are too few, of the queue and shape; of the queue; of all. For
the views that passes and estimates see. Source: history-based prediction with categories from
narrow to wide (Smith, Taylor and Foster, JSSPP'98).
"""

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil
from typing import NamedTuple

from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.pool.units import plural

from .pool_view import ClaimView, PoolView
from .shape import WorkerShape

ENOUGH = 5
"""Of how many past claims at least something is learned."""

RECENT = 200
"""How many of a category are remembered: the latest ones."""


class Source(Enum):
    """Where an expected time comes from; learned ones name whose claims taught it."""

    SAID = "said by its user"
    USER = "of the same user, queue and shape"
    SHAPE = "of the same queue and shape"
    QUEUE = "of the same queue"
    ALL = "of anybody"
    UNKNOWN = "unknown"


class PastClaim(NamedTuple):
    """A claim that has ended by itself: not one that was taken or reached its limit.

    Attributes:
        queue: The one that it asked for.
        workers: That it had at least.
        took_s: From its start to its end.
        ended_s: When, on the axis of every view.
    """

    owner: UserName
    queue: str
    worker: WorkerShape
    workers: int
    took_s: float
    ended_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """How long a claim is expected to take.

    Attributes:
        median_s: What half of those like it took at most; None if nothing is known.
        at_most_s: What nine of ten took at most.
        source: Where it comes from.
        learned_from: How many past claims it was learned from; 0 unless learned.
    """

    median_s: float | None
    at_most_s: float | None
    source: Source
    learned_from: int = 0

    def __str__(self) -> str:
        if not self.learned_from:
            return self.source.value
        return f"learned from {plural(self.learned_from, 'past claim')} {self.source.value}"


class Experience:
    """What past claims took, by category. Taught as claims end, in the order of their ends."""

    def __init__(self) -> None:
        self._past: dict[Hashable, deque[tuple[float, float]]] = {}
        self._sorted: dict[Hashable, tuple[float, ...]] = {}
        self._last_s = float("-inf")

    def learn(self, past: PastClaim) -> None:
        """Remember one more claim.

        Raises:
            ValueError: If it ended before one that was learned of before.
        """
        if past.ended_s < self._last_s:
            raise ValueError(f"a claim that ended at {past.ended_s} comes after {self._last_s}")
        self._last_s = past.ended_s
        for _, category in _categories(past.owner, past.queue, past.worker, past.workers):
            remembered = self._past.setdefault(category, deque(maxlen=RECENT))
            remembered.append((past.ended_s, past.took_s))
            self._sorted.pop(category, None)

    def expect(self, claim: ClaimView, now_s: float) -> Expected:
        """How long a claim will take, as known at a moment. Its time limit is not looked at."""
        if claim.expected_s is not None and claim.expected_at_most_s is None:
            said_s = claim.expected_s
            return Expected(median_s=said_s, at_most_s=said_s, source=Source.SAID)
        queue = claim.queue.removesuffix(f"/{claim.owner}")
        for source, category in _categories(claim.owner, queue, claim.worker, claim.minimum):
            took = self._known(category, now_s)
            if len(took) >= ENOUGH:
                return Expected(
                    median_s=quantile(took, 0.5),
                    at_most_s=quantile(took, 0.9),
                    source=source,
                    learned_from=len(took),
                )
        return Expected(median_s=None, at_most_s=None, source=Source.UNKNOWN)

    def _known(self, category: Hashable, now_s: float) -> tuple[float, ...]:
        if now_s < self._last_s:
            remembered = self._past.get(category, ())
            return tuple(sorted(took_s for ended_s, took_s in remembered if ended_s <= now_s))
        known = self._sorted.get(category)
        if known is None:
            known = tuple(sorted(took_s for _, took_s in self._past.get(category, ())))
            self._sorted[category] = known
        return known


def with_expected(view: PoolView, experience: Experience) -> PoolView:
    """Enter what is learned into a view, for each claim whose user says nothing."""
    return replace(view, claims=tuple(_informed(c, experience, view.now_s) for c in view.claims))


def _informed(claim: ClaimView, experience: Experience, now_s: float) -> ClaimView:
    if claim.expected_s is not None:
        return claim
    expected = experience.expect(claim, now_s)
    return replace(claim, expected_s=expected.median_s, expected_at_most_s=expected.at_most_s)


def quantile(took: tuple[float, ...], part: float) -> float:
    """The least of these sorted values that so great a part of them does not exceed."""
    return took[max(0, ceil(part * len(took)) - 1)]


def _categories(
    owner: UserName, queue: str, worker: WorkerShape, workers: int
) -> Iterator[tuple[Source, Hashable]]:
    """From narrow to wide. A shape is what it holds of which model, not where it may be."""
    shape = (worker.thousandths * workers, worker.model)
    yield Source.USER, (owner, queue, shape)
    yield Source.SHAPE, (queue, shape)
    yield Source.QUEUE, (queue,)
    yield Source.ALL, ()
