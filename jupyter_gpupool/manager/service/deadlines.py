"""When something is due without anybody asking: time limits, lost hosts, late scale-downs.

All on monotonic time, so that a clock set back or forth ends nothing early and keeps nothing
alive. The service follows each commit with `follow`; the timer asks for what is due.
"""

from collections.abc import Iterable
from datetime import datetime

from jupyter_gpupool.manager.settings import Settings
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.host import HostPhase
from jupyter_gpupool.pool.ids import ClaimId, HostId

from .books import Books
from .desired import excess
from .snapshot import FAILURE_WINDOW_S, MOST_FAILURES

_GRACE = 1 / 3
"""Of `host_lost_after_s`: what a host gets after its link broke, however long it was silent."""


class Deadlines:
    """What is due when, by monotonic seconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.expiry: dict[ClaimId, float] = {}
        self.lost: dict[HostId, float] = {}
        self.shrink: dict[ClaimId, float] = {}
        self.retry: dict[ClaimId, float] = {}

    def earliest(self) -> float | None:
        """When the next thing is due."""
        kinds = (self.expiry, self.lost, self.shrink, self.retry)
        return min((time for kind in kinds for time in kind.values()), default=None)

    def follow_claims(
        self, claim_ids: Iterable[ClaimId], books: Books, now: datetime, monotonic_s: float
    ) -> None:
        """Set and clear what these claims have to fear."""
        for claim_id in claim_ids:
            self._follow_expiry(claim_id, books, now, monotonic_s)
            self._follow_shrink(claim_id, books, monotonic_s)
            self._follow_retry(claim_id, books)

    def follow_hosts(
        self, host_ids: Iterable[HostId], books: Books, heard_s: float, monotonic_s: float
    ) -> None:
        """A silent host is lost some time after it was last heard, and not without a grace."""
        after_s = self._settings.host_lost_after_s
        for host_id in host_ids:
            if books.hosts[host_id].phase is HostPhase.SILENT:
                due = max(heard_s + after_s, monotonic_s + after_s * _GRACE)
                self.lost.setdefault(host_id, due)
            else:
                self.lost.pop(host_id, None)

    def postpone_losses(self, monotonic_s: float) -> None:
        """The manager itself was away: silent hosts get their grace again."""
        grace_until = monotonic_s + self._settings.host_lost_after_s * _GRACE
        self.lost = {host_id: max(due, grace_until) for host_id, due in self.lost.items()}

    def _follow_expiry(
        self, claim_id: ClaimId, books: Books, now: datetime, monotonic_s: float
    ) -> None:
        record = books.claims.get(claim_id)
        if record is None or record.claim.is_over or record.claim.expires_at is None:
            self.expiry.pop(claim_id, None)
        elif claim_id not in self.expiry:
            longest_s = self._settings.longest_life.total_seconds()
            left_s = (record.claim.expires_at - now).total_seconds()
            self.expiry[claim_id] = monotonic_s + min(max(0.0, left_s), longest_s)

    def _follow_shrink(self, claim_id: ClaimId, books: Books, monotonic_s: float) -> None:
        record = books.claims.get(claim_id)
        runs = record is not None and record.claim.phase in (Phase.STARTING, Phase.RUNNING)
        if record is not None and runs and excess(record.claim, books.leases_of(claim_id)) > 0:
            self.shrink.setdefault(claim_id, monotonic_s + self._settings.shrink_within_s)
        else:
            self.shrink.pop(claim_id, None)

    def _follow_retry(self, claim_id: ClaimId, books: Books) -> None:
        times = books.failures.get(claim_id) or ()
        if len(times) >= MOST_FAILURES:
            self.retry[claim_id] = times[-MOST_FAILURES] + FAILURE_WINDOW_S
        else:
            self.retry.pop(claim_id, None)
