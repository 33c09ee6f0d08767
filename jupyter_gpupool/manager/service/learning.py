"""How long past claims took, taught as claims end and asked by those who foresee starts.

Kept by the service. What ended before this manager started comes from the database, once. Guarded
by a lock: it is taught on the loop and asked from threads.
"""

from collections.abc import Iterable
from math import inf
from threading import Lock
from typing import TYPE_CHECKING

from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.scheduling.expected import Expected, Experience, PastClaim, with_expected
from jupyter_gpupool.scheduling.pool_view import ClaimView, PoolView
from jupyter_gpupool.scheduling.shape import WorkerShape

from .books import Books
from .environments import Barred
from .records import ClaimRecord
from .worker_shapes import worker_shape

if TYPE_CHECKING:
    from jupyter_gpupool.pool.ids import ClaimId

MOST_PAST = 1000
"""So many ended claims are read from the database at first."""


class Learning:
    """What is known of how long claims take."""

    def __init__(self) -> None:
        self._experience = Experience()
        self._known: set[ClaimId] | None = set()
        self._last_s = float("-inf")
        self._lock = Lock()

    def teach(self, records: Iterable[ClaimRecord], books: Books) -> None:
        """Learn of claims that have just ended."""
        with self._lock:
            for record in filter(_ended_by_itself, records):
                self._experience.learn(self._past(record, books))
                if self._known is not None:
                    self._known.add(record.claim.id)

    def recall(self, records: Iterable[ClaimRecord], books: Books) -> None:
        """Learn of claims that ended before, but for those that were just taught; once."""
        ended = sorted(filter(_ended_by_itself, records), key=lambda r: r.claim.phase_since)
        with self._lock:
            known, self._known = self._known or set(), None
            for record in ended:
                if record.claim.id not in known:
                    self._experience.learn(self._past(record, books))

    def _past(self, record: ClaimRecord, books: Books) -> PastClaim:
        claim = record.claim
        started = claim.started_at or claim.phase_since
        # A clock that was set back must not make an end come before an earlier one.
        self._last_s = max(self._last_s, claim.phase_since.timestamp())
        return PastClaim(
            owner=claim.owner,
            queue=claim.request.queue,
            worker=worker_shape(books, record, Barred()),
            workers=max(1, claim.bounds.minimum),
            took_s=(claim.phase_since - started).total_seconds(),
            ended_s=self._last_s,
        )

    def informed(self, view: PoolView) -> PoolView:
        """The view with what is expected of each claim whose user says nothing."""
        with self._lock:
            return with_expected(view, self._experience)

    def expect(self, claim: ClaimView) -> Expected:
        """How long a claim is thought to take, and where that comes from."""
        with self._lock:
            return self._experience.expect(claim, inf)

    def expect_of(self, record: ClaimRecord, books: Books, shape: WorkerShape) -> Expected:
        """The same of a claim in the books whose workers have this shape."""
        claim, said = record.claim, record.claim.request.expected
        view = ClaimView(
            id=claim.id,
            owner=claim.owner,
            queue=books.policy.leaf_of(claim),
            minimum=max(1, claim.bounds.minimum),
            worker=shape,
            expected_s=None if said is None else said.total_seconds(),
        )
        return self.expect(view)


def _ended_by_itself(record: ClaimRecord) -> bool:
    """Whether it was its user who had enough: neither its limit, nor others, nor a fault."""
    claim = record.claim
    has_run = claim.phase is Phase.ENDED and claim.started_at is not None
    return has_run and claim.end is EndKind.RELEASED
